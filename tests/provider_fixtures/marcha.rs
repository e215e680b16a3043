//! Marcha: the header, the fallback, and the older shape.

use super::*;

#[test]
fn the_header_is_the_key_and_else_the_order_its_status_and_when() {
    let provider = plain(ProviderKind::Marcha);
    for (fixture, expected) in [
        (
            "order_paid",
            one("order.paid", "marcha:order.paid:7c1c2f0e-0000-4000-8000-00000000aa01:PAID:2026-02-03T10%3A00%3A00Z"),
        ),
        (
            "order_created",
            one(
                "order.created",
                "marcha:order.created:7c1c2f0e-0000-4000-8000-00000000aa01:PENDING:2026-02-03T09%3A55%3A00Z",
            ),
        ),
        ("order_without_time", unkeyed("order.paid", "no usable value at `$.occurred_at`")),
        ("transaction_paid", one("transaction", "marcha:7001:880001:paid")),
        ("transaction_waiting", one("transaction", "marcha:7001:880001:waiting_payment")),
    ] {
        let sent = Sent::fixture(&format!("marcha/{fixture}.json"));
        assert_eq!(sent.found(&*provider), expected, "{fixture}");
        let with_header = sent.header("X-Webhook-Event-Id", "whe-0001");
        assert_eq!(with_header.key(&*provider).unwrap(), "marcha:whe-0001", "{fixture}");
        let with_two = with_header.header("X-Webhook-Event-Id", "whe-0002");
        assert_eq!(with_two.found(&*provider), expected, "{fixture}: of two headers neither counts");
    }
}

#[test]
fn the_header_is_enough_whatever_the_body_is() {
    let provider = plain(ProviderKind::Marcha);
    for body in ["", "not json", "{}"] {
        let sent = Sent::body(body).header("X-Webhook-Event-Id", "whe-0001");
        assert_eq!(sent.key(&*provider).unwrap(), "marcha:whe-0001", "{body}");
    }
}
