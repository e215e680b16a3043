"""The alerts and the dashboard at rest; test_live.py asks them of a real Prometheus."""

import json
import unittest

from tools import DEPLOY, read_yaml, run

PROMETHEUS = DEPLOY / "prometheus"


class Alerts(unittest.TestCase):
    def test_prometheus_takes_the_rules_and_the_scrape_configuration(self):
        run("promtool", "check", "rules", PROMETHEUS / "alerts.yaml")
        run("promtool", "check", "config", PROMETHEUS / "prometheus.yaml")

    def test_every_alert_fires_when_it_should_and_only_then(self):
        run("promtool", "test", "rules", PROMETHEUS / "alerts.test.yaml")

    def test_every_alert_is_seen_firing_and_silent(self):
        (group,) = read_yaml(PROMETHEUS / "alerts.yaml")["groups"]
        seen = set()
        for test in read_yaml(PROMETHEUS / "alerts.test.yaml")["tests"]:
            for moment in test["alert_rule_test"]:
                seen.add((moment["alertname"], bool(moment.get("exp_alerts"))))
        names = [rule["alert"] for rule in group["rules"]]
        self.assertEqual(seen, {(name, fires) for name in names for fires in [True, False]})

    def test_every_alert_says_what_to_make_of_it(self):
        (group,) = read_yaml(PROMETHEUS / "alerts.yaml")["groups"]
        for rule in group["rules"]:
            self.assertIn(rule["labels"]["severity"], ["page", "ticket"], rule["alert"])
            self.assertEqual(set(rule["annotations"]), {"summary", "description"}, rule["alert"])


class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dashboard = json.loads((DEPLOY / "grafana/dashboards/hookonce.json").read_text(encoding="utf-8"))
        cls.panels = cls.dashboard["panels"]

    def test_no_panel_lies_on_another_and_none_is_there_twice(self):
        ids = [panel["id"] for panel in self.panels]
        self.assertEqual(len(ids), len(set(ids)))
        taken = {}
        for panel in self.panels:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
            for x in range(at["x"], at["x"] + at["w"]):
                for y in range(at["y"], at["y"] + at["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} lies on {taken.get((x, y))}")
                    taken[x, y] = panel["title"]

    def test_it_asks_the_source_and_the_routes_that_were_chosen(self):
        for panel in self.panels:
            if panel["type"] == "row":
                continue
            self.assertTrue(panel["description"], panel["title"])
            for asked in [panel, *panel["targets"]]:
                self.assertEqual(asked["datasource"]["uid"], "${datasource}", panel["title"])
            for target in panel["targets"]:
                self.assertIn('job=~"$job"', target["expr"], panel["title"])

    def test_it_answers_what_the_person_on_call_asks(self):
        rows = [panel["title"] for panel in self.panels if panel["type"] == "row"]
        wanted = ["How many came", "How many were duplicates, and from whom", "What the handler answered"]
        for question in [*wanted, "How long providers wait"]:
            self.assertIn(question, rows)
