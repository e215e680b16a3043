"""A real Prometheus scrapes a running gateway, and answers all that the dashboard and the alerts ask.

The gateway runs as the image's user among the image's files, with the composition's configuration, on a Redis with the
composition's (and then with Kubernetes') settings.
"""

import hashlib
import hmac
import json
import pathlib
import re
import tempfile
import time
import unittest

from services import Site, eventually, request
from tools import DEPLOY, SECRETS, read_yaml

# What Grafana would put in, with times that a slow machine does not outrun.
VARIABLES = {"$__rate_interval": "5m", "$__range": "5m", "$job": ".*", "$route": ".*"}
SELECTOR = re.compile(r"\b(?:hookonce_\w+|up)(?:\{[^}]*\})?")


def stripe(event, secret=SECRETS["STRIPE_WEBHOOK_SECRET"]):
    body = json.dumps({"id": event, "object": "event", "type": "charge.succeeded"})
    now = int(time.time())
    signature = hmac.new(secret.encode(), f"{now}.{body}".encode(), hashlib.sha256).hexdigest()
    return {"body": body, "headers": {"Stripe-Signature": f"t={now},v1={signature}"}}


def dashboard():
    return json.loads((DEPLOY / "grafana/dashboards/hookonce.json").read_text(encoding="utf-8"))


def as_grafana_asks(query):
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    assert "$" not in query, query
    return query


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = Site(pathlib.Path(folder.name))
        cls.addClassCleanup(cls.site.end)
        cls.site.start_redis(read_yaml(DEPLOY / "compose.yaml")["services"]["redis"]["command"])
        cls.site.start_handler()
        cls.site.start_gateway()
        cls.site.start_prometheus()
        # An increase is seen between two scrapes, so the first has to come before what is to be seen.
        eventually("the first scrape", lambda: cls.site.ask("hookonce_deliveries_total"))
        for event in ["evt_1", "evt_2", "evt_3"]:
            cls.send(stripe(event), 200, "first")
            cls.send(stripe(event), 200, "duplicate")
        cls.send(stripe("evt_4", secret="another"), 401, "unauthorized")
        eventually("the scrape after it", lambda: cls.site.ask("sum(hookonce_deliveries_total)") == [7.0])
        scrapes = "count_over_time(hookonce_store_up[5m])"
        before = cls.site.ask(scrapes)
        eventually("two more scrapes", lambda: cls.site.ask(scrapes)[0] >= before[0] + 2)

    @classmethod
    def send(cls, delivery, status, result):
        port = cls.site.ports["gateway"]
        answer = request(port, "POST", "/webhooks/stripe", delivery["body"].encode(), delivery["headers"])
        assert (answer[0], answer[1]["hookonce-result"]) == (status, result), f"{answer}\n{cls.site.log('gateway')}"

    def test_the_store_is_up_and_keeps_what_it_is_told(self):
        self.assertEqual(self.site.ask("hookonce_store_up"), [1.0])
        self.assertEqual(self.site.ask("hookonce_store_durable"), [1.0])

    def test_every_query_of_the_dashboard_is_answered(self):
        for panel in dashboard()["panels"]:
            for target in panel.get("targets", []):
                query = as_grafana_asks(target["expr"])
                with self.subTest(panel=panel["title"], query=query):
                    self.assertTrue(self.site.ask(query), "it has no value")

    def test_the_dashboard_tells_what_was_sent(self):
        queries = {panel["title"]: panel["targets"][0]["expr"] for panel in dashboard()["panels"] if "targets" in panel}
        # Prometheus extends an increase to the whole time asked for, so it may be more than was sent.
        bounds = {"Deliveries": (7, 14), "Duplicates kept back": (3, 6), "Share of duplicates": (0.5, 0.5)}
        for title, (least, most) in bounds.items():
            with self.subTest(panel=title):
                (value,) = self.site.ask(as_grafana_asks(queries[title]))
                self.assertGreaterEqual(value, least - 0.001)
                self.assertLessEqual(value, most + 0.001)

    def test_the_variables_of_the_dashboard_have_values(self):
        for variable in dashboard()["templating"]["list"]:
            if variable["type"] == "datasource":
                continue
            series, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
            series = series.replace("$job", ".*")
            self.assertTrue(self.site.prometheus(f"label/{label}/values", **{"match[]": series}), variable["name"])

    def test_every_alert_is_evaluated_on_series_that_there_are(self):
        (group,) = self.site.prometheus("rules")["groups"]
        wanted = read_yaml(DEPLOY / "prometheus/alerts.yaml")["groups"][0]["rules"]
        self.assertEqual([rule["name"] for rule in group["rules"]], [rule["alert"] for rule in wanted])
        for rule in group["rules"]:
            self.assertEqual(rule["health"], "ok", rule)
        for rule in wanted:
            selectors = SELECTOR.findall(rule["expr"])
            self.assertTrue(selectors, rule["alert"])
            for selector in selectors:
                self.assertTrue(self.site.ask(selector), f"{rule['alert']} asks for {selector}, which is not there")

    def test_no_alert_is_raised_by_what_is_ordinary(self):
        firing = [alert["labels"]["alertname"] for alert in self.site.prometheus("alerts")["alerts"]]
        self.assertEqual(firing, [])


class Stopping(unittest.TestCase):
    def test_the_gateway_keeps_kubernetes_redis_and_ends_by_the_images_signal(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        site = Site(pathlib.Path(folder.name))
        self.addCleanup(site.end)
        site.start_redis(["redis-server"], (DEPLOY / "kubernetes/redis/redis.conf").read_text(encoding="utf-8"))
        site.start_gateway()
        readiness = request(site.ports["admin"], "GET", "/readyz")[2].decode()
        self.assertEqual(readiness, "ready\nstore: up\ndurable: yes\n")
        self.assertEqual(site.stop("gateway"), 0, site.log("gateway"))
