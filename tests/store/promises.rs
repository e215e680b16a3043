//! The trait's guarantees, one function each. Every store is put through all of them.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use hookonce::claim::{Forgotten, Found, Record, Recorded, State, Terms, Token};
use hookonce::event::EventKey;
use hookonce::store::ClaimStore;

use crate::asking::{TERMS, claim, delivered, key, release, remaining, renew, settle, state, unknown, until_absent};
use crate::redis_server::PATIENCE;

pub type Promise = for<'a> fn(&'a dyn ClaimStore) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// A lease to wait for.
const SHORT: Duration = Duration::from_millis(300);

macro_rules! promises {
    ($($name:ident),* $(,)?) => {
        pub const ALL: &[(&str, Promise)] = &[$((stringify!($name), |store| Box::pin($name(store)))),*];
    };
}

promises![
    an_absent_key_is_claimed,
    a_held_key_is_held_for_others_and_claimed_for_its_owner,
    a_done_key_tells_its_record,
    a_batch_is_answered_key_by_key_in_its_order,
    a_key_twice_in_a_batch_is_claimed_once_and_for_both,
    one_of_fifty_parallel_claimers_wins,
    a_claim_ends_with_its_lease,
    renewal_lengthens_a_claim_to_a_whole_lease,
    only_the_owner_renews,
    only_the_owner_releases,
    only_the_owner_promotes_and_may_repeat_it,
    an_ended_claim_is_neither_renewed_nor_promoted_nor_released,
    a_sender_that_is_not_renewed_reads_as_done_and_is_not_brought_back,
    a_sender_that_is_renewed_stays_held,
    done_wins_over_every_state,
    done_can_be_repeated,
    a_done_key_is_left_alone_by_its_old_owner,
    a_done_key_ends_with_its_window_which_duplicates_do_not_lengthen,
    an_unknown_outcome_is_written_by_the_owner_only_and_never_over_done,
    what_comes_late_after_a_takeover_changes_nothing,
    a_key_is_seen_as_it_stands,
    a_done_key_is_forgotten_and_can_be_claimed_anew,
    an_open_key_is_forgotten_only_by_force_and_its_owner_finds_out,
    a_dead_sender_is_forgotten_like_what_is_done,
    what_is_delivered_after_its_claim_was_forgotten_is_remembered,
    a_thousand_keys_are_one_batch,
    any_character_may_stand_in_a_key,
    no_keys_no_answers,
    a_working_store_is_healthy,
];

async fn an_absent_key_is_claimed(store: &dyn ClaimStore) {
    let key = key();
    assert_eq!(state(store, &key, TERMS).await, None);
    assert_eq!(claim(store, &key, &Token::fresh(), TERMS).await, Found::Claimed);
    assert_eq!(state(store, &key, TERMS).await, Some(State::Claimed));
}

async fn a_held_key_is_held_for_others_and_claimed_for_its_owner(store: &dyn ClaimStore) {
    let (key, owner) = (key(), Token::fresh());
    claim(store, &key, &owner, TERMS).await;
    assert_eq!(claim(store, &key, &Token::fresh(), TERMS).await, Found::Held);
    assert_eq!(claim(store, &key, &owner, TERMS).await, Found::Claimed);
    assert!(store.promote(&key, &owner, TERMS.window).await.unwrap());
    assert_eq!(claim(store, &key, &Token::fresh(), TERMS).await, Found::Held);
    assert_eq!(claim(store, &key, &owner, TERMS).await, Found::Claimed);
}

async fn a_done_key_tells_its_record(store: &dyn ClaimStore) {
    for record in [delivered(204), unknown(), Record { at: None, result: Recorded::Unknown }] {
        let key = key();
        settle(store, &key, record, TERMS.window).await;
        assert_eq!(claim(store, &key, &Token::fresh(), TERMS).await, Found::Done(record));
    }
}

async fn a_batch_is_answered_key_by_key_in_its_order(store: &dyn ClaimStore) {
    let [absent, held, done, sending, dead, own] = std::array::from_fn(|_| key());
    let (ours, other) = (Token::fresh(), Token::fresh());
    for key in [&held, &sending, &dead] {
        claim(store, key, &other, TERMS).await;
    }
    claim(store, &own, &ours, TERMS).await;
    settle(store, &done, delivered(200), TERMS.window).await;
    assert!(store.promote(&sending, &other, TERMS.window).await.unwrap());
    assert!(store.promote(&dead, &other, TERMS.window - TERMS.lease * 2).await.unwrap());

    let died = Record { at: None, result: Recorded::Unknown };
    let batch = [done.clone(), absent, dead, held, own, sending, done];
    let answers = store.claim(&batch, &ours, TERMS).await;
    let found: Vec<Found> = answers.into_iter().map(Result::unwrap).collect();
    let duplicate = Found::Done(delivered(200));
    let expected =
        [duplicate.clone(), Found::Claimed, Found::Done(died), Found::Held, Found::Claimed, Found::Held, duplicate];
    assert_eq!(found, expected);
}

async fn a_key_twice_in_a_batch_is_claimed_once_and_for_both(store: &dyn ClaimStore) {
    let (key, token) = (key(), Token::fresh());
    let answers = store.claim(&[key.clone(), key.clone()], &token, TERMS).await;
    assert!(matches!(answers.as_slice(), [Ok(Found::Claimed), Ok(Found::Claimed)]), "{answers:?}");
    assert!(release(store, &key, &token).await);
    assert_eq!(state(store, &key, TERMS).await, None);
}

async fn one_of_fifty_parallel_claimers_wins(store: &dyn ClaimStore) {
    let (key, tokens) = (key(), (0..50).map(|_| Token::fresh()).collect::<Vec<_>>());
    let mut claims: Vec<_> = tokens.iter().map(|token| Box::pin(claim(store, &key, token, TERMS))).collect();
    let mut won = 0;
    // All are begun before the first is waited for.
    let mut found: Vec<Option<Found>> = vec![None; claims.len()];
    std::future::poll_fn(|context| {
        for (claim, found) in claims.iter_mut().zip(&mut found) {
            if found.is_none()
                && let std::task::Poll::Ready(answer) = claim.as_mut().poll(context)
            {
                *found = Some(answer);
            }
        }
        if found.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    for found in found.into_iter().flatten() {
        match found {
            Found::Claimed => won += 1,
            found => assert_eq!(found, Found::Held),
        }
    }
    assert_eq!(won, 1);
}

async fn a_claim_ends_with_its_lease(store: &dyn ClaimStore) {
    let (key, terms, next) = (key(), Terms { lease: SHORT, ..TERMS }, Token::fresh());
    let before = Instant::now();
    claim(store, &key, &Token::fresh(), terms).await;
    let after = Instant::now();
    let deadline = after + PATIENCE;
    loop {
        let asked = Instant::now();
        match claim(store, &key, &next, TERMS).await {
            Found::Claimed => {
                assert!(before.elapsed() >= SHORT - Duration::from_millis(2), "taken after {:?}", before.elapsed());
                break;
            }
            found => assert_eq!(found, Found::Held),
        }
        assert!(asked < after + SHORT + Duration::from_millis(100), "held beyond its lease");
        assert!(asked < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn renewal_lengthens_a_claim_to_a_whole_lease(store: &dyn ClaimStore) {
    let (key, owner) = (key(), Token::fresh());
    let short = Terms { lease: Duration::from_secs(10), ..TERMS };
    claim(store, &key, &owner, short).await;
    assert!(remaining(store, &key).await <= short.lease);
    assert!(renew(store, &key, &owner, TERMS).await);
    let left = remaining(store, &key).await;
    assert!(left > short.lease && left <= TERMS.lease, "{left:?} left");
    assert_eq!(state(store, &key, TERMS).await, Some(State::Claimed));
}

async fn only_the_owner_renews(store: &dyn ClaimStore) {
    let [held, absent, done] = std::array::from_fn(|_| key());
    let (owner, other) = (Token::fresh(), Token::fresh());
    claim(store, &held, &owner, Terms { lease: Duration::from_secs(10), ..TERMS }).await;
    settle(store, &done, delivered(200), Duration::from_secs(10)).await;
    let answers = store.renew(&[held.clone(), absent.clone(), done.clone()], &other, TERMS).await;
    assert!(matches!(answers.as_slice(), [Ok(false), Ok(false), Ok(false)]), "{answers:?}");
    assert!(remaining(store, &held).await <= Duration::from_secs(10));
    assert!(remaining(store, &done).await <= Duration::from_secs(10));
    assert_eq!(state(store, &absent, TERMS).await, None);
    let answers = store.renew(&[absent, held], &owner, TERMS).await;
    assert!(matches!(answers.as_slice(), [Ok(false), Ok(true)]), "{answers:?}");
}

async fn only_the_owner_releases(store: &dyn ClaimStore) {
    let [held, sending, absent] = std::array::from_fn(|_| key());
    let (owner, other) = (Token::fresh(), Token::fresh());
    claim(store, &held, &owner, TERMS).await;
    claim(store, &sending, &owner, TERMS).await;
    assert!(store.promote(&sending, &owner, TERMS.window).await.unwrap());
    let all = [held.clone(), absent, sending.clone()];
    let answers = store.release(&all, &other).await;
    assert!(matches!(answers.as_slice(), [Ok(false), Ok(false), Ok(false)]), "{answers:?}");
    assert_eq!(state(store, &held, TERMS).await, Some(State::Claimed));
    assert_eq!(state(store, &sending, TERMS).await, Some(State::Sending));
    let answers = store.release(&all, &owner).await;
    assert!(matches!(answers.as_slice(), [Ok(true), Ok(false), Ok(true)]), "{answers:?}");
    assert_eq!(claim(store, &held, &other, TERMS).await, Found::Claimed);
    assert_eq!(claim(store, &sending, &other, TERMS).await, Found::Claimed);
}

async fn only_the_owner_promotes_and_may_repeat_it(store: &dyn ClaimStore) {
    let (key, owner, other) = (key(), Token::fresh(), Token::fresh());
    assert!(!store.promote(&key, &owner, TERMS.window).await.unwrap(), "an absent key was promoted");
    claim(store, &key, &owner, TERMS).await;
    assert!(!store.promote(&key, &other, TERMS.window).await.unwrap());
    assert_eq!(state(store, &key, TERMS).await, Some(State::Claimed));
    for _ in 0..2 {
        assert!(store.promote(&key, &owner, TERMS.window).await.unwrap());
        assert_eq!(state(store, &key, TERMS).await, Some(State::Sending));
        assert!(remaining(store, &key).await > TERMS.lease);
    }
    assert!(!store.promote(&key, &other, TERMS.window).await.unwrap());
    settle(store, &key, delivered(200), TERMS.window).await;
    assert!(!store.promote(&key, &owner, TERMS.window).await.unwrap(), "a done key was promoted");
    assert_eq!(state(store, &key, TERMS).await, Some(State::Done(delivered(200))));
}

async fn an_ended_claim_is_neither_renewed_nor_promoted_nor_released(store: &dyn ClaimStore) {
    let (key, owner) = (key(), Token::fresh());
    claim(store, &key, &owner, Terms { lease: SHORT, ..TERMS }).await;
    until_absent(store, &key).await;
    assert!(!renew(store, &key, &owner, TERMS).await);
    assert!(!store.promote(&key, &owner, TERMS.window).await.unwrap());
    assert!(!store.settle_unknown(&key, &owner, unknown(), TERMS.window).await.unwrap());
    assert!(!release(store, &key, &owner).await);
    assert_eq!(state(store, &key, TERMS).await, None);
}

async fn a_sender_that_is_not_renewed_reads_as_done_and_is_not_brought_back(store: &dyn ClaimStore) {
    let (key, owner, terms) = (key(), Token::fresh(), Terms { lease: SHORT, ..TERMS });
    let died = Record { at: None, result: Recorded::Unknown };
    claim(store, &key, &owner, terms).await;
    assert!(store.promote(&key, &owner, terms.window).await.unwrap());
    let deadline = Instant::now() + PATIENCE;
    while state(store, &key, terms).await == Some(State::Sending) {
        assert!(Instant::now() < deadline, "the dead sender is not noticed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(state(store, &key, terms).await, Some(State::Done(died)));
    assert_eq!(claim(store, &key, &Token::fresh(), terms).await, Found::Done(died));
    assert!(!renew(store, &key, &owner, terms).await);
    assert_eq!(claim(store, &key, &Token::fresh(), terms).await, Found::Done(died));
    assert!(remaining(store, &key).await > TERMS.window / 2, "it is remembered for the rest of its window");
    // If the owner lives after all, what it knows counts.
    settle(store, &key, delivered(200), terms.window).await;
    assert_eq!(claim(store, &key, &Token::fresh(), terms).await, Found::Done(delivered(200)));
}

async fn a_sender_that_is_renewed_stays_held(store: &dyn ClaimStore) {
    let (key, owner, lease) = (key(), Token::fresh(), Duration::from_secs(2));
    let terms = Terms { lease, ..TERMS };
    claim(store, &key, &owner, terms).await;
    assert!(store.promote(&key, &owner, terms.window).await.unwrap());
    let begun = Instant::now();
    while begun.elapsed() < lease + lease / 2 {
        assert!(renew(store, &key, &owner, terms).await);
        assert_eq!(claim(store, &key, &Token::fresh(), terms).await, Found::Held);
        tokio::time::sleep(lease / 20).await;
    }
    assert_eq!(state(store, &key, terms).await, Some(State::Sending));
}

async fn done_wins_over_every_state(store: &dyn ClaimStore) {
    let [absent, held, sending, doubtful] = std::array::from_fn(|_| key());
    let owner = Token::fresh();
    for key in [&held, &sending] {
        claim(store, key, &owner, TERMS).await;
    }
    assert!(store.promote(&sending, &owner, TERMS.window).await.unwrap());
    settle(store, &doubtful, unknown(), TERMS.window).await;
    let all = [absent, held, sending, doubtful];
    let done: Vec<_> = all.iter().map(|key| (key.clone(), delivered(201), TERMS.window)).collect();
    let answers = store.settle_done(&done).await;
    assert!(answers.len() == 4 && answers.iter().all(Result::is_ok), "{answers:?}");
    for key in &all {
        assert_eq!(state(store, key, TERMS).await, Some(State::Done(delivered(201))));
        assert!(remaining(store, key).await > TERMS.lease, "the window counts, not the lease");
        assert_eq!(claim(store, key, &owner, TERMS).await, Found::Done(delivered(201)));
    }
}

async fn done_can_be_repeated(store: &dyn ClaimStore) {
    let key = key();
    for _ in 0..3 {
        settle(store, &key, delivered(200), TERMS.window).await;
        assert_eq!(state(store, &key, TERMS).await, Some(State::Done(delivered(200))));
    }
}

async fn a_done_key_is_left_alone_by_its_old_owner(store: &dyn ClaimStore) {
    let (key, owner) = (key(), Token::fresh());
    claim(store, &key, &owner, TERMS).await;
    settle(store, &key, delivered(200), TERMS.window).await;
    assert!(!release(store, &key, &owner).await);
    assert!(!renew(store, &key, &owner, TERMS).await);
    assert!(!store.promote(&key, &owner, TERMS.window).await.unwrap());
    assert_eq!(state(store, &key, TERMS).await, Some(State::Done(delivered(200))));
}

async fn a_done_key_ends_with_its_window_which_duplicates_do_not_lengthen(store: &dyn ClaimStore) {
    let key = key();
    let window = SHORT * 2;
    let settled = Instant::now();
    settle(store, &key, delivered(200), window).await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match claim(store, &key, &Token::fresh(), TERMS).await {
            Found::Claimed => break,
            found => assert_eq!(found, Found::Done(delivered(200))),
        }
        assert!(Instant::now() < deadline, "duplicates lengthen the window");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(settled.elapsed() >= window - Duration::from_millis(2));
}

async fn an_unknown_outcome_is_written_by_the_owner_only_and_never_over_done(store: &dyn ClaimStore) {
    let [held, sending, done, absent] = std::array::from_fn(|_| key());
    let (owner, other) = (Token::fresh(), Token::fresh());
    for key in [&held, &sending, &done] {
        claim(store, key, &owner, TERMS).await;
    }
    assert!(store.promote(&sending, &owner, TERMS.window).await.unwrap());
    settle(store, &done, delivered(200), TERMS.window).await;
    for key in [&held, &sending, &done, &absent] {
        assert!(!store.settle_unknown(key, &other, unknown(), TERMS.window).await.unwrap());
    }
    assert_eq!(state(store, &held, TERMS).await, Some(State::Claimed));
    assert_eq!(state(store, &sending, TERMS).await, Some(State::Sending));
    assert_eq!(state(store, &absent, TERMS).await, None);
    for (key, ours) in [(&held, true), (&sending, true), (&done, false), (&absent, false)] {
        assert_eq!(store.settle_unknown(key, &owner, unknown(), TERMS.window).await.unwrap(), ours);
    }
    for key in [&held, &sending] {
        assert_eq!(claim(store, key, &other, TERMS).await, Found::Done(unknown()));
        assert!(remaining(store, key).await > TERMS.lease);
    }
    assert_eq!(claim(store, &done, &other, TERMS).await, Found::Done(delivered(200)));
}

async fn what_comes_late_after_a_takeover_changes_nothing(store: &dyn ClaimStore) {
    let (key, late, next) = (key(), Token::fresh(), Token::fresh());
    claim(store, &key, &late, Terms { lease: SHORT, ..TERMS }).await;
    until_absent(store, &key).await;
    assert_eq!(claim(store, &key, &next, TERMS).await, Found::Claimed);
    assert!(!renew(store, &key, &late, Terms { lease: TERMS.lease * 2, ..TERMS }).await);
    assert!(!release(store, &key, &late).await);
    assert!(!store.promote(&key, &late, TERMS.window).await.unwrap());
    assert!(!store.settle_unknown(&key, &late, unknown(), TERMS.window).await.unwrap());
    assert_eq!(claim(store, &key, &late, TERMS).await, Found::Held);
    assert!(remaining(store, &key).await <= TERMS.lease);
    assert!(release(store, &key, &next).await, "the newcomer's claim was touched");
}

async fn a_key_is_seen_as_it_stands(store: &dyn ClaimStore) {
    let (key, owner) = (key(), Token::fresh());
    let near = |left: Duration, whole: Duration| left <= whole && left > whole - PATIENCE;
    assert_eq!(store.look(&key, TERMS).await.unwrap(), None);

    claim(store, &key, &owner, TERMS).await;
    assert_eq!(state(store, &key, TERMS).await, Some(State::Claimed));
    assert!(near(remaining(store, &key).await, TERMS.lease));

    assert!(store.promote(&key, &owner, TERMS.window).await.unwrap());
    assert_eq!(state(store, &key, TERMS).await, Some(State::Sending));
    assert!(near(remaining(store, &key).await, TERMS.window));

    let window = TERMS.window * 2;
    settle(store, &key, delivered(202), window).await;
    assert_eq!(state(store, &key, TERMS).await, Some(State::Done(delivered(202))));
    assert!(near(remaining(store, &key).await, window));
}

async fn a_done_key_is_forgotten_and_can_be_claimed_anew(store: &dyn ClaimStore) {
    for record in [delivered(204), unknown()] {
        let [key, other] = std::array::from_fn(|_| key());
        assert_eq!(store.forget(&key, TERMS, false).await.unwrap(), Forgotten::Absent);
        for key in [&key, &other] {
            settle(store, key, record, TERMS.window).await;
        }
        match store.forget(&key, TERMS, false).await.unwrap() {
            Forgotten::Freed(was) => assert_eq!(was.state, State::Done(record)),
            answer => panic!("not freed: {answer:?}"),
        }
        assert_eq!(state(store, &key, TERMS).await, None);
        assert_eq!(claim(store, &key, &Token::fresh(), TERMS).await, Found::Claimed);
        assert_eq!(state(store, &other, TERMS).await, Some(State::Done(record)), "another key was touched");
    }
}

async fn an_open_key_is_forgotten_only_by_force_and_its_owner_finds_out(store: &dyn ClaimStore) {
    for sending in [false, true] {
        let (key, owner, next) = (key(), Token::fresh(), Token::fresh());
        claim(store, &key, &owner, TERMS).await;
        if sending {
            assert!(store.promote(&key, &owner, TERMS.window).await.unwrap());
        }
        let open = if sending { State::Sending } else { State::Claimed };
        match store.forget(&key, TERMS, false).await.unwrap() {
            Forgotten::Open(standing) => assert_eq!(standing.state, open),
            answer => panic!("an open claim was not left alone: {answer:?}"),
        }
        assert_eq!(claim(store, &key, &next, TERMS).await, Found::Held);
        match store.forget(&key, TERMS, true).await.unwrap() {
            Forgotten::Freed(was) => assert_eq!(was.state, open),
            answer => panic!("not freed: {answer:?}"),
        }
        assert!(!renew(store, &key, &owner, TERMS).await);
        assert!(!store.promote(&key, &owner, TERMS.window).await.unwrap());
        assert_eq!(claim(store, &key, &next, TERMS).await, Found::Claimed);
        assert!(!release(store, &key, &owner).await, "the newcomer's claim was touched");
    }
}

async fn a_dead_sender_is_forgotten_like_what_is_done(store: &dyn ClaimStore) {
    let (key, owner) = (key(), Token::fresh());
    claim(store, &key, &owner, TERMS).await;
    assert!(store.promote(&key, &owner, TERMS.window - TERMS.lease * 2).await.unwrap());
    assert!(matches!(store.forget(&key, TERMS, false).await.unwrap(), Forgotten::Freed(_)));
    assert_eq!(state(store, &key, TERMS).await, None);
}

async fn what_is_delivered_after_its_claim_was_forgotten_is_remembered(store: &dyn ClaimStore) {
    let (key, owner) = (key(), Token::fresh());
    claim(store, &key, &owner, TERMS).await;
    assert!(matches!(store.forget(&key, TERMS, true).await.unwrap(), Forgotten::Freed(_)));
    settle(store, &key, delivered(200), TERMS.window).await;
    assert_eq!(claim(store, &key, &Token::fresh(), TERMS).await, Found::Done(delivered(200)));
}

async fn a_thousand_keys_are_one_batch(store: &dyn ClaimStore) {
    let keys: Vec<EventKey> = (0..1000).map(|_| key()).collect();
    let (owner, other) = (Token::fresh(), Token::fresh());
    let claimed = store.claim(&keys, &owner, TERMS).await;
    assert!(claimed.len() == 1000 && claimed.iter().all(|answer| matches!(answer, Ok(Found::Claimed))));
    let renewed = store.renew(&keys, &owner, TERMS).await;
    assert!(renewed.len() == 1000 && renewed.iter().all(|answer| matches!(answer, Ok(true))));
    let done: Vec<_> = keys[..500].iter().map(|key| (key.clone(), delivered(200), TERMS.window)).collect();
    assert!(store.settle_done(&done).await.iter().all(Result::is_ok));
    let freed = store.release(&keys, &owner).await;
    assert!(freed.len() == 1000 && freed[..500].iter().all(|answer| matches!(answer, Ok(false))));
    assert!(freed[500..].iter().all(|answer| matches!(answer, Ok(true))));
    let found = store.claim(&keys, &other, TERMS).await;
    assert!(found[..500].iter().all(|answer| matches!(answer, Ok(Found::Done(_)))));
    assert!(found[500..].iter().all(|answer| matches!(answer, Ok(Found::Claimed))));
}

async fn any_character_may_stand_in_a_key(store: &dyn ClaimStore) {
    let unique = Token::fresh();
    for odd in ["a b", "ünï", "\r\n", "\0", "'; DROP TABLE keys; --", "{slot}", "*?[]", "\"", "%", ":", "#", "🪝"] {
        let key = EventKey::new("odd", [Some(odd), Some(unique.as_str())]);
        let owner = Token::fresh();
        assert_eq!(claim(store, &key, &owner, TERMS).await, Found::Claimed, "{odd:?}");
        assert!(store.promote(&key, &owner, TERMS.window).await.unwrap(), "{odd:?}");
        assert!(renew(store, &key, &owner, TERMS).await, "{odd:?}");
        assert!(release(store, &key, &owner).await, "{odd:?}");
        settle(store, &key, delivered(200), TERMS.window).await;
        assert_eq!(state(store, &key, TERMS).await, Some(State::Done(delivered(200))), "{odd:?}");
    }
    // As `keys get` may hand them over: not encoded.
    let bare = EventKey::from_encoded(&format!("bare \r\n\0 {}", unique.as_str()));
    assert_eq!(claim(store, &bare, &unique, TERMS).await, Found::Claimed);
    assert_eq!(claim(store, &bare, &Token::fresh(), TERMS).await, Found::Held);
}

async fn no_keys_no_answers(store: &dyn ClaimStore) {
    assert!(store.claim(&[], &Token::fresh(), TERMS).await.is_empty());
    assert!(store.settle_done(&[]).await.is_empty());
    assert!(store.release(&[], &Token::fresh()).await.is_empty());
    assert!(store.renew(&[], &Token::fresh(), TERMS).await.is_empty());
}

async fn a_working_store_is_healthy(store: &dyn ClaimStore) {
    let health = store.health().await;
    assert!(health.up && health.durable == Some(true) && health.fault.is_none(), "{health:?}");
}
