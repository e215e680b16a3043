//! Which answers of `INFO` prove that a Redis would forget.

use super::*;

const DURABLE: &str = "# Server\r\nredis_version:7.0.15\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
                       # Persistence\r\naof_enabled:1\r\naof_last_write_status:ok\r\n";

fn changed(from: &str, to: &str) -> String {
    assert!(DURABLE.contains(from), "the sample holds no `{from}`");
    DURABLE.replace(from, to)
}

#[test]
fn only_a_proven_reason_to_forget_is_a_fault() {
    let evicts = || Fault::Evicts("allkeys-lru".into());
    for (case, info, faults, complete) in [
        ("durable", DURABLE.to_owned(), vec![], true),
        ("no append-only file", changed("aof_enabled:1", "aof_enabled:0"), vec![Fault::NoAppendOnlyFile], true),
        ("a write failed", changed("status:ok", "status:err"), vec![Fault::AppendFailed], true),
        ("a policy without a limit", changed("noeviction", "allkeys-lru"), vec![], true),
        ("a limit without eviction", changed("maxmemory:0", "maxmemory:1048576"), vec![], true),
        (
            "a limit with eviction",
            changed("maxmemory:0", "maxmemory:1048576").replace("noeviction", "allkeys-lru"),
            vec![evicts()],
            true,
        ),
        (
            "everything wrong",
            "aof_enabled:0\r\nmaxmemory:1\r\nmaxmemory_policy:allkeys-lru\r\n".into(),
            vec![Fault::NoAppendOnlyFile, evicts()],
            true,
        ),
        ("still loading", changed("aof_enabled:1", "loading:1\r\naof_enabled:0"), vec![], false),
        ("loaded", changed("aof_enabled:1", "loading:0\r\naof_enabled:0"), vec![Fault::NoAppendOnlyFile], true),
        ("no persistence section", "maxmemory:0\r\n".into(), vec![], false),
        ("no memory section", "aof_enabled:1\r\n".into(), vec![], false),
        ("nothing", String::new(), vec![], false),
    ] {
        let report = Report::read(Some(&info));
        assert_eq!((report.faults, report.complete), (faults, complete), "{case}");
    }
    assert_eq!(Report::read(None), Report { too_old: None, faults: vec![], complete: false, is_replica: false });
}

#[test]
fn redis_before_7_is_too_old() {
    for (version, too_old) in [("6.2.14", true), ("5.0.3", true), ("7.0.0", false), ("7.2.4", false), ("8.0.1", false)]
    {
        let report = Report::read(Some(&changed("7.0.15", version)));
        assert_eq!(report.too_old.is_some(), too_old, "version `{version}`");
    }
}

#[test]
fn every_fault_names_the_setting_that_ends_it() {
    assert!(Fault::NoAppendOnlyFile.hint().contains("`appendonly yes`"));
    assert!(Fault::Evicts("allkeys-lru".into()).hint().contains("`maxmemory-policy noeviction`"));
}

#[test]
fn a_fault_stops_claims_only_under_require() {
    let forgets = Report::read(Some("aof_enabled:0\r\nmaxmemory:0\r\n"));
    let silent = Report::read(None);
    for (policy, report, claims, durable, starts) in [
        (Persistence::Require, &forgets, false, Some(false), false),
        (Persistence::Warn, &forgets, true, Some(false), true),
        (Persistence::Off, &forgets, true, None, true),
        (Persistence::Require, &silent, true, None, true),
    ] {
        let durability = Durability::new(policy, Arc::new(Metrics::new("test").unwrap()));
        assert_eq!(durability.learn(report), durable, "{policy:?}");
        assert_eq!(matches!(durability.verdict(), Verdict::Claim), claims, "{policy:?}");
        assert_eq!(durability.forbids_start(report).is_empty(), starts, "{policy:?}");
    }
}

#[test]
fn a_fault_ends_when_redis_says_so() {
    let durability = Durability::new(Persistence::Require, Arc::new(Metrics::new("test").unwrap()));
    durability.learn(&Report::read(Some("aof_enabled:0\r\nmaxmemory:0\r\n")));
    assert!(matches!(durability.verdict(), Verdict::Refuse(_)));
    durability.learn(&Report::read(Some(DURABLE)));
    assert!(matches!(durability.verdict(), Verdict::Claim));
}
