//! A configuration that changes while the gateway runs.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::gateway::Gateway;
use crate::support::provider::{self, Request};
use crate::support::route::Route;
use crate::support::store::Store;
use crate::support::upstream::{Answer, Gate, Upstream};

const FAILED: &str = "hookonce_config_reload_failed";

fn generic(id: &str) -> Request {
    Request::post("/webhooks/generic", format!("{{\"id\":\"{id}\"}}"))
}

/// Sends first-seen deliveries one after the other, on several connections, until `change` has returned. Each must be
/// answered by a handler.
fn under_load(gateway: &Gateway, change: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..2)
            .map(|sender| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut sent = 0;
                    while !stop.load(Ordering::Acquire) {
                        gateway.send(&generic(&format!("load-{sender}-{sent}"))).expect(200, "first");
                        sent += 1;
                    }
                    sent
                })
            })
            .collect();
        // Dropped in a panic too, or the senders would never end.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }
        let ends = Stop(&stop);
        change();
        drop(ends);
        for sender in senders {
            assert!(sender.join().expect("every delivery was answered") > 0);
        }
    });
}

#[test]
fn an_edited_file_is_taken_over_and_no_delivery_fails() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let gateway = Gateway::start(&Store::Embedded, &[Route::generic(old.address)]);
    under_load(&gateway, || {
        gateway.site.edit(&old.address.to_string(), &new.address.to_string());
        gateway.wait_for_log(&["read anew", "changed=true"]);
    });
    gateway.send(&generic("after")).expect(200, "first");
    assert!(String::from_utf8_lossy(&new.received().last().expect("a delivery").body).contains("after"));
    assert_eq!(gateway.metric(FAILED), 0.0);
}

#[test]
fn a_link_that_is_turned_is_a_change_and_no_delivery_fails() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let gateway = Gateway::start(&Store::Embedded, &[Route::generic(old.address)]);
    // As Kubernetes mounts a ConfigMap: the file is a link into `..data`, which is a link to a folder with a date.
    let folder = gateway.site.folder();
    let text = std::fs::read_to_string(gateway.site.config()).expect("a configuration");
    for (version, text) in
        [("..1", text.clone()), ("..2", text.replace(&old.address.to_string(), &new.address.to_string()))]
    {
        std::fs::create_dir(folder.join(version)).expect("a folder");
        std::fs::write(folder.join(version).join("hookonce.yaml"), text).expect("written");
    }
    let turn = |target: &str, link: &str| {
        symlink(target, folder.join("next")).expect("a link");
        std::fs::rename(folder.join("next"), folder.join(link)).expect("turned");
    };
    turn("..1", "..data");
    turn("..data/hookonce.yaml", "hookonce.yaml");
    under_load(&gateway, || {
        turn("..2", "..data");
        gateway.wait_for_log(&["read anew", "changed=true"]);
    });
    gateway.send(&generic("after")).expect(200, "first");
    assert!(String::from_utf8_lossy(&new.received().last().expect("a delivery").body).contains("after"));
    assert_eq!(gateway.log().matches("changed=").count(), 1, "the same text behind a link is no change");
}

#[test]
fn what_is_in_flight_ends_by_the_route_it_came_in_by() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let gateway = Gateway::start(&Store::Embedded, &[Route::generic(old.address)]);
    let gate = Gate::closed();
    old.script([Answer::status(201).behind(&gate)]);
    let mut first = gateway.begin(&generic("slow"));
    old.wait_for(1);
    gateway.site.edit(&old.address.to_string(), &new.address.to_string());
    gateway.hang_up();
    gateway.wait_for_log(&["read anew", "changed=true"]);
    let mut copy = gateway.begin(&generic("slow"));
    gateway.wait_for_in_flight(2);
    gate.open();
    first.finish().expect(201, "first");
    copy.finish().expect(200, "duplicate");
    assert_eq!(new.received().len(), 0, "the copy came in by the new route, and is still a copy");
    gateway.send(&generic("next")).expect(200, "first");
    assert_eq!((old.count(), new.count()), (1, 1));
}

#[test]
fn a_secret_in_a_file_is_changed_by_changing_the_file() {
    let upstream = Upstream::start();
    let folder = tempfile::tempdir().expect("a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "whsec_old\n").expect("written");
    let route = Route::new("stripe", "/webhooks/stripe", "stripe", upstream.address)
        .with(&format!("secret: {{file: {}}}", secret.display()));
    let gateway = Gateway::start(&Store::Embedded, &[route]);
    let signed = |id: &str, secret: &str| {
        let body = provider::stripe_body(id);
        let signature = provider::stripe_signature(secret, provider::timestamp(std::time::Duration::ZERO), &body);
        Request::post("/webhooks/stripe", body).header("Stripe-Signature", &signature)
    };
    gateway.send(&signed("evt_1", "whsec_old")).expect(200, "first");
    gateway.send(&signed("evt_2", "whsec_new")).expect(401, "unauthorized");
    std::fs::write(&secret, "whsec_new\n").expect("written");
    gateway.wait_for_log(&["read anew", "changed=true"]);
    gateway.send(&signed("evt_2", "whsec_new")).expect(200, "first");
    gateway.send(&signed("evt_3", "whsec_old")).expect(401, "unauthorized");
    gateway.send(&signed("evt_1", "whsec_new")).expect(200, "duplicate");
    assert!(!gateway.log().contains("whsec_"), "{}", gateway.log());

    // A file that is gone changes nothing, and is found when it comes back.
    std::fs::remove_file(&secret).expect("removed");
    gateway.wait_for_metric(FAILED, 1.0);
    gateway.send(&signed("evt_4", "whsec_new")).expect(200, "first");
    std::fs::write(&secret, "whsec_new\n").expect("written");
    gateway.wait_for_metric(FAILED, 0.0);
}

#[test]
fn a_bad_file_changes_nothing_and_every_problem_is_said() {
    let upstream = Upstream::start();
    let gateway = Gateway::start(&Store::Embedded, &[Route::generic(upstream.address)]);
    assert_eq!(gateway.metric(FAILED), 0.0);
    let good = std::fs::read_to_string(gateway.site.config()).expect("a configuration");
    gateway.site.edit("verify: off", "verify: off\n    leese: 30s\n    mode: loud");
    gateway.hang_up();
    gateway.wait_for_log(&["routes[0].leese", "did you mean `lease`"]);
    gateway.wait_for_log(&["routes[0].mode", "observe"]);
    gateway.wait_for_metric(FAILED, 1.0);
    gateway.send(&generic("1")).expect(200, "first");
    for broken in ["", "routes: [", "{}"] {
        std::fs::write(gateway.site.config(), broken).expect("written");
        gateway.hang_up();
        gateway.send(&generic("1")).expect(200, "duplicate");
    }
    std::fs::write(gateway.site.config(), good).expect("written");
    gateway.wait_for_metric(FAILED, 0.0);
    gateway.send(&generic("1")).expect(200, "duplicate");
    assert!(gateway.is_running());
}

#[test]
fn what_needs_a_restart_says_so_and_the_rest_is_taken_over() {
    let upstream = Upstream::start();
    let money = Route::new("money", "/money", "generic", upstream.address)
        .with("verify: off")
        .with("key: ['$.id']")
        .with("window: 7d")
        .with("unknown_outcome: suppress");
    let gateway = Gateway::start(&Store::Embedded, &[Route::generic(upstream.address), money]);
    gateway.site.edit("threads: 2", "threads: 3\n  log: {keys: hashed}");
    gateway.site.edit("./hookonce.db", "./other.db");
    gateway.site.edit("window: 7d", "window: 9d");
    gateway.site.edit("name: generic", "name: renamed");
    gateway.hang_up();
    for name in ["server.threads", "server.log", "store", "window of route money"] {
        gateway.wait_for_log(&["WARN", name, "started again"]);
    }
    gateway.wait_for_log(&["read anew", "changed=true"]);
    assert_eq!(gateway.metric("hookonce_deliveries_total{route=\"renamed\",result=\"first\"}"), 0.0);
    assert_eq!(gateway.metric(FAILED), 0.0);
    gateway.send(&generic("1")).expect(200, "first");
    gateway.wait_for_log(&["renamed", "renamed:1"]);
    assert!(!gateway.site.folder().join("other.db").exists());
}

#[test]
fn routes_that_are_right_only_after_a_restart_are_refused_until_then() {
    let upstream = Upstream::start();
    let gateway = Gateway::start_with(&Store::Embedded, &["body_budget: 8MiB"], &[Route::generic(upstream.address)]);
    gateway.site.edit("body_budget: 8MiB", "body_budget: 64MiB");
    gateway.site.edit("verify: off", "verify: off\n    max_body: 32MiB");
    gateway.hang_up();
    gateway.wait_for_log(&["routes[0].max_body", "server.body_budget"]);
    gateway.wait_for_metric(FAILED, 1.0);
    gateway.send(&generic("1")).expect(200, "first");
}
