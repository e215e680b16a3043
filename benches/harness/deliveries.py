"""What is sent: small and large events of a shop, signed Stripe events, and Meta batches.

Bodies are split around their id, or written out whole where each of them has its own signature.
"""

import functools
import hashlib
import hmac
import json
import time

STRIPE_SECRET = "whsec_bench"
META_SECRET = "meta_bench"
# BENCH_RUN, the thread and the counter of `send.lua`.
RUN_DIGITS = 9
ID_LENGTH = RUN_DIGITS + 2 + 9


def head_of(path, length, more=""):
    return (
        f"POST {path} HTTP/1.1\r\nHost: hooks.example.com\r\nUser-Agent: bench/1.0\r\n"
        f"Content-Type: application/json\r\n{more}Content-Length: {length}\r\n\r\n"
    )


def around_id(size):
    """A body of `size` bytes, as the text before and after its id. The id stands first, as most senders have it."""
    before = '{"id":"evt_'
    middle = '","type":"order.paid","created":1772355600,"data":{"object":{"order":"A-1094","amount":4990,"note":"'
    after = '"}}}'
    filler = size - len(before) - ID_LENGTH - len(middle) - len(after)
    word = "paid in full; "
    return before, middle + (word * (filler // len(word) + 1))[: max(filler, 0)] + after


def request_around_id(path, size):
    """A whole request, split the same way."""
    before, after = around_id(size)
    return head_of(path, len(before) + ID_LENGTH + len(after)) + before, after


def stripe(path, identity, size=2048):
    """A signed event. Stripe's signatures age, so they are made just before they are sent."""
    before, after = around_id(size)
    body = f"{before}{identity:0{ID_LENGTH}d}{after}"
    now = int(time.time())
    signature = hmac.new(STRIPE_SECRET.encode(), f"{now}.{body}".encode(), hashlib.sha256).hexdigest()
    return head_of(path, len(body), f"Stripe-Signature: t={now},v1={signature}\r\n") + body


@functools.cache
def meta_template(messages):
    """The body of so many messages, each of another sender, with its contacts. `@` stands for the delivery's number."""
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "5511900000000", "phone_number_id": "106540352242922"},
        "contacts": [],
        "messages": [],
    }
    for index in range(messages):
        sender = f"55119{index:08d}"
        value["contacts"].append({"profile": {"name": "Ana"}, "wa_id": sender})
        value["messages"].append(
            {
                "from": sender,
                "id": f"wamid.@{index:08d}",
                "timestamp": "1772355600",
                "type": "text",
                "text": {"body": "Is the order on its way?"},
            }
        )
    entry = {"id": "102290129340398", "changes": [{"value": value, "field": "messages"}]}
    return json.dumps({"object": "whatsapp_business_account", "entry": [entry]}, separators=(",", ":"))


def meta(path, identity, messages):
    """A signed delivery."""
    body = meta_template(messages).replace("@", f"{identity:032d}")
    signature = hmac.new(META_SECRET.encode(), body.encode(), hashlib.sha256).hexdigest()
    return head_of(path, len(body), f"X-Hub-Signature-256: sha256={signature}\r\n") + body


def write_requests(path, requests, threads):
    """The files that `send.lua` reads, one for each thread."""
    files = [open(f"{path}.{thread}", "w", encoding="ascii", newline="") for thread in range(threads)]
    for index, request in enumerate(requests):
        files[index % threads].write(f"{len(request)}\n{request}")
    for file in files:
        file.close()
