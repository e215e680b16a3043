"""compose.yaml: a sound composition whose parts fit together."""

import unittest

import compose_spec

from tools import DEPLOY, SECRETS, check_config, read_yaml, seconds

GRAFANA = "/var/lib/hookonce/dashboards"


class Composition(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.composition = read_yaml(DEPLOY / "compose.yaml")
        cls.services = cls.composition["services"]

    def mounts(self, service):
        """From the path in the container to that in deploy/."""
        pairs = [volume.split(":") for volume in self.services[service]["volumes"]]
        return {inside: outside for outside, inside, *_ in pairs}

    def test_it_follows_the_specification(self):
        compose_spec.PyCompose.from_yaml((DEPLOY / "compose.yaml").read_text(encoding="utf-8")).validate()
        for name, service in self.services.items():
            self.assertLessEqual(set(service.get("depends_on", [])), set(self.services), name)

    def test_the_gateways_configuration_is_sound_and_names_the_other_services(self):
        self.assertEqual(self.mounts("hookonce"), {"/etc/hookonce": "./compose"})
        self.assertEqual(set(self.services["hookonce"]["environment"]), set(SECRETS))
        config = check_config((DEPLOY / "compose/hookonce.yaml").read_text(encoding="utf-8"), SECRETS)
        self.assertIn("redis", self.services)
        self.assertEqual(config["store"]["redis"]["url"], "redis://redis:6379/0")
        listens = self.services["handler"]["command"][-1].rsplit(":", 1)[1]
        for route in config["routes"]:
            self.assertEqual(route["upstream"], f"http://handler:{listens}")
        grace = seconds(config["server"].get("shutdown_grace", "30s"))
        self.assertGreater(seconds(self.services["hookonce"]["stop_grace_period"]), grace)

    def test_hookonce_may_write_nothing_and_gains_no_rights(self):
        for service in ["hookonce", "handler"]:
            self.assertIs(self.services[service]["read_only"], True)
            self.assertEqual(self.services[service]["cap_drop"], ["ALL"])
            self.assertIn("no-new-privileges:true", self.services[service]["security_opt"])

    def test_nothing_is_published_beyond_this_machine(self):
        for name, service in self.services.items():
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), f"{name} publishes {port}")

    def test_every_image_is_of_a_chosen_version(self):
        for name, service in self.services.items():
            _, _, tag = service["image"].partition(":")
            self.assertNotIn(tag, ["", "latest"], name)

    def test_what_is_mounted_is_there(self):
        for name, service in self.services.items():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                there = (DEPLOY / source).is_dir() if source.startswith(".") else source in self.composition["volumes"]
                self.assertTrue(there, f"{name} mounts {source}")

    def test_prometheus_reads_its_file_and_scrapes_the_gateway(self):
        self.assertEqual(self.mounts("prometheus")["/etc/prometheus"], "./prometheus")
        self.assertIn("--config.file=/etc/prometheus/prometheus.yaml", self.services["prometheus"]["command"])
        (job,) = read_yaml(DEPLOY / "prometheus/prometheus.yaml")["scrape_configs"]
        config = read_yaml(DEPLOY / "compose/hookonce.yaml")
        port = config["server"]["admin"].rsplit(":", 1)[1]
        self.assertEqual(job["static_configs"], [{"targets": [f"hookonce:{port}"]}])

    def test_grafana_finds_prometheus_and_the_dashboard(self):
        mounts = self.mounts("grafana")
        self.assertEqual(mounts["/etc/grafana/provisioning"], "./grafana/provisioning")
        self.assertEqual(mounts[GRAFANA], "./grafana/dashboards")
        provisioning = DEPLOY / "grafana/provisioning"
        (source,) = read_yaml(provisioning / "datasources/prometheus.yaml")["datasources"]
        self.assertEqual((source["type"], source["url"]), ("prometheus", "http://prometheus:9090"))
        (provider,) = read_yaml(provisioning / "dashboards/hookonce.yaml")["providers"]
        self.assertEqual(provider["options"]["path"], GRAFANA)
        home = self.services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
        self.assertTrue((DEPLOY / "grafana/dashboards" / home.removeprefix(f"{GRAFANA}/")).is_file())
