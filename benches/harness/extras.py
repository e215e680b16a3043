def measure(bench):
    return {}
