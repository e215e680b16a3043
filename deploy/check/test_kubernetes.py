"""The manifests as kustomize builds them: valid, and as hookonce needs them."""

import base64
import pathlib
import tempfile
import unittest

import kubernetes_validate
import yaml

from tools import DEPLOY, TOOLS, check_config, run, seconds

EXAMPLES = DEPLOY / "kubernetes/examples"
# Native sidecars and `preStop.sleep` are on from here.
OLDEST = "1.30"


def build(example):
    return list(yaml.safe_load_all(run(TOOLS / "kubectl", "kustomize", EXAMPLES / example)))


def port_of(address):
    return int(address.rsplit(":", 1)[1])


class Example:
    """What holds for both examples. `example` and `deployment` are the subclasses'."""

    @classmethod
    def setUpClass(cls):
        cls.documents = build(cls.example)
        cls.pod = cls.only("Deployment", cls.deployment)["spec"]["template"]
        containers = cls.pod["spec"].get("initContainers", []) + cls.pod["spec"]["containers"]
        cls.hookonce = next(container for container in containers if container["name"] == "hookonce")
        cls.redis = cls.only("StatefulSet", "hookonce-redis")["spec"]

    @classmethod
    def only(cls, kind, name):
        found = [each for each in cls.documents if each["kind"] == kind and each["metadata"]["name"] == name]
        assert len(found) == 1, f"there are {len(found)} {kind} `{name}`"
        return found[0]

    def config(self):
        """The gateway's configuration, judged with the very secrets that the pod will have."""
        mount = next(it for it in self.hookonce["volumeMounts"] if it["mountPath"].startswith("/run/secrets/"))
        text = self.only("ConfigMap", "hookonce")["data"]["hookonce.yaml"]
        with tempfile.TemporaryDirectory() as folder:
            for name, value in self.only("Secret", "hookonce")["data"].items():
                pathlib.Path(folder, name).write_bytes(base64.b64decode(value))
            return check_config(text.replace(mount["mountPath"], folder), {})

    def test_every_manifest_fits_its_schema(self):
        for version in [OLDEST, kubernetes_validate.latest_version()]:
            for document in self.documents:
                # The operator's own kind, of which Kubernetes has no schema; its fields are looked at below.
                if document["kind"] == "PodMonitor":
                    continue
                with self.subTest(version=version, kind=document["kind"], name=document["metadata"]["name"]):
                    kubernetes_validate.validate(document, version, strict=True)

    def test_the_configuration_is_sound_and_listens_where_the_pod_says(self):
        server = self.config()["server"]
        ports = {port["name"]: port["containerPort"] for port in self.hookonce["ports"]}
        self.assertEqual(ports, {"webhooks": port_of(server["listen"]), "admin": port_of(server["admin"])})
        for address in [server["listen"], server["admin"]]:
            self.assertTrue(address.startswith("0.0.0.0:"), f"{address} is not reached from outside the pod")

    def test_the_services_send_to_hookonce(self):
        listens = port_of(self.config()["server"]["listen"])
        service = self.only("Service", self.deployment)["spec"]
        self.assertEqual([port["targetPort"] for port in service["ports"]], [listens])
        self.assertLessEqual(service["selector"].items(), self.pod["metadata"]["labels"].items())

    def test_what_is_mounted_exists_and_is_mounted_whole(self):
        for pod in [self.pod, self.redis["template"]]:
            for volume in pod["spec"]["volumes"]:
                if "configMap" in volume:
                    self.only("ConfigMap", volume["configMap"]["name"])
                else:
                    self.only("Secret", volume["secret"]["secretName"])
        for mount in self.hookonce["volumeMounts"]:
            self.assertNotIn("subPath", mount)
            self.assertTrue(mount["readOnly"])
        folders = [mount["mountPath"] for mount in self.hookonce["volumeMounts"]]
        self.assertIn(str(pathlib.PurePath(self.hookonce["args"][-1]).parent), folders)

    def test_nothing_may_more_than_it_needs(self):
        store = self.redis["template"]
        for pod, container in [(self.pod, self.hookonce), (store, store["spec"]["containers"][0])]:
            with self.subTest(container=container["name"]):
                security = {**pod["spec"].get("securityContext", {}), **container["securityContext"]}
                self.assertIs(security["runAsNonRoot"], True)
                self.assertGreater(security["runAsUser"], 0)
                self.assertIs(security["readOnlyRootFilesystem"], True)
                self.assertIs(security["allowPrivilegeEscalation"], False)
                self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
                self.assertEqual(security["seccompProfile"], {"type": "RuntimeDefault"})
                self.assertIn("memory", container["resources"]["limits"])
                self.assertEqual(set(container["resources"]["requests"]), {"cpu", "memory"})

    def test_every_container_that_serves_pauses_before_its_end_and_there_is_time_for_all(self):
        pauses = []
        for container in [self.hookonce, *self.pod["spec"]["containers"]]:
            pauses.append(container["lifecycle"]["preStop"]["sleep"]["seconds"])
        self.assertEqual(len(set(pauses)), 1, "one that ends before the others is missed by them")
        grace = seconds(self.config()["server"]["shutdown_grace"])
        self.assertGreater(self.pod["spec"]["terminationGracePeriodSeconds"], pauses[0] + grace)

    def test_prometheus_finds_the_pods_and_redis_lets_them_in(self):
        monitor = self.only("PodMonitor", "hookonce")["spec"]
        policy = self.only("NetworkPolicy", "hookonce-redis")["spec"]
        by_label = {"matchExpressions": [{"key": "hookonce", "operator": "Exists"}]}
        self.assertEqual(monitor["selector"], by_label)
        self.assertEqual(policy["ingress"][0]["from"], [{"podSelector": by_label}])
        self.assertIn("hookonce", self.pod["metadata"]["labels"])
        (endpoint,) = monitor["podMetricsEndpoints"]
        self.assertIn(endpoint["port"], [port["name"] for port in self.hookonce["ports"]])
        self.assertEqual(endpoint["path"], "/metrics")

    def test_redis_keeps_what_it_is_told(self):
        (name,) = [volume["configMap"]["name"] for volume in self.redis["template"]["spec"]["volumes"]]
        lines = self.only("ConfigMap", name)["data"]["redis.conf"].splitlines()
        for line in ["appendonly yes", "appendfsync always", "maxmemory-policy noeviction", "dir /data"]:
            self.assertIn(line, lines)
        (container,) = self.redis["template"]["spec"]["containers"]
        (claim,) = self.redis["volumeClaimTemplates"]
        self.assertIn({"name": claim["metadata"]["name"], "mountPath": "/data"}, container["volumeMounts"])
        service = self.only("Service", "hookonce-redis")
        self.assertEqual(self.redis["serviceName"], service["metadata"]["name"])
        (port,) = service["spec"]["ports"]
        url = self.config()["store"]["redis"]["url"]
        self.assertEqual(url, f"redis://{service['metadata']['name']}:{port['port']}/0")


class Sidecar(Example, unittest.TestCase):
    example = "sidecar"
    deployment = "shop"

    def test_it_starts_before_the_application_and_ends_after_it(self):
        self.assertIn(self.hookonce, self.pod["spec"]["initContainers"])
        self.assertEqual(self.hookonce["restartPolicy"], "Always")

    def test_the_application_is_what_it_was_but_for_the_pause(self):
        before = next(yaml.safe_load_all((EXAMPLES / "sidecar/application.yaml").read_text(encoding="utf-8")))
        (application,) = self.pod["spec"]["containers"]
        untouched = {key: value for key, value in application.items() if key != "lifecycle"}
        self.assertEqual([untouched], before["spec"]["template"]["spec"]["containers"])

    def test_its_probes_ask_whether_the_process_works_and_nothing_else(self):
        for probe in ["startupProbe", "readinessProbe", "livenessProbe"]:
            self.assertEqual(self.hookonce[probe]["httpGet"], {"path": "/healthz", "port": "admin"}, probe)

    def test_it_sends_to_the_application_in_its_own_pod(self):
        (application,) = self.pod["spec"]["containers"]
        for route in self.config()["routes"]:
            self.assertEqual(route["upstream"], f"http://{application['args'][-1]}")
        self.assertEqual(self.config()["routes"][-1]["path"], "/*", "what is no webhook is passed on")


class Gateway(Example, unittest.TestCase):
    example = "gateway"
    deployment = "hookonce"

    def test_there_are_several_and_they_go_one_at_a_time(self):
        deployment = self.only("Deployment", "hookonce")["spec"]
        self.assertGreater(deployment["replicas"], 1)
        self.assertEqual(deployment["strategy"]["rollingUpdate"]["maxUnavailable"], 0)
        budget = self.only("PodDisruptionBudget", "hookonce")["spec"]
        self.assertEqual(budget["maxUnavailable"], 1)
        self.assertEqual(budget["selector"], deployment["selector"])
        self.assertLessEqual(budget["selector"]["matchLabels"].items(), self.pod["metadata"]["labels"].items())

    def test_only_readiness_asks_whether_it_is_stopping(self):
        self.assertEqual(self.hookonce["readinessProbe"]["httpGet"], {"path": "/readyz", "port": "admin"})
        for probe in ["startupProbe", "livenessProbe"]:
            self.assertEqual(self.hookonce[probe]["httpGet"], {"path": "/healthz", "port": "admin"}, probe)
