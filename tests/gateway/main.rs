//! What a running gateway promises: real processes, real bytes on real sockets.
//!
//! One file for each theme; `support` is the kit they share.
//!
//! # What goes wrong in the field, and where it is tested
//!
//! Each line is a public report about duplicate or lost webhooks, which stands for its whole kind, and the test of that
//! kind: `file::test` in this folder, or below another one that is named. `tests/architecture.rs` sees to it that each
//! test is there. Beside them, `tests/torture` lets all of it happen at once.
//!
//! | report | test |
//! | --- | --- |
//! | StellarBank#39, ShopifySharp#919 | `parallel::fifty_copies_at_once_make_one_exchange_and_fifty_answers_of_200` |
//! | devlane PR#355 | `parallel::fifty_copies_over_two_gateways_on_one_redis_make_one_exchange` |
//! | sentry PR#107734 | `survival::a_copy_that_comes_after_every_lease_has_ended_is_still_a_duplicate` |
//! | deer-flow#4123, PraisonAI#4208 | `survival::still_a_duplicate_after_gateway_and_store_were_killed` |
//! | preloop PR#517 | `stopping::a_delivery_in_flight_finishes_and_is_remembered` |
//! | frappe_whatsapp PR#252, postmangovsg PR#2151 | `batches::statuses_of_one_message_are_events_of_their_own_in_any_order` |
//! | idiomatic-critter-stack#9, ai-code-reviewer#677 | `src/config/tests/unwise::keys_that_no_repeated_delivery_will_match_are_said` |
//! | elasticclaw PR#112 | `commands::explain_tells_events_and_keys_as_json` |
//! | Convoy (empty key) | `unkeyed::a_delivery_without_a_key_is_forwarded_each_time_and_counted` |
//! | Convoy (joined parts) | `src/event::different_lists_of_parts_give_different_keys` |
//! | express-idempotency#32 | `survival::the_claim_of_a_gateway_killed_mid_exchange_is_taken_over_within_a_lease` |
//! | powertools-lambda#53, powertools-lambda-python#8049 | `survival::a_handler_slower_than_the_lease_still_gets_one_exchange`, `suppress::an_unknown_outcome_is_not_sent_again` |
//! | Outpost, Powertools | `survival::a_gateway_that_was_paused_past_its_lease_does_no_harm` |
//! | sibyl PR#349 | `store_outage::without_redis_nothing_is_sent_and_the_answer_is_503_in_time` |
//! | postel#129, AI-Shipping-Labs#285, unicon#42, ThrillhouseBot#89, deer-flow PR#4274 | `upstream_failures::what_the_handler_refuses_is_relayed_and_the_retry_is_forwarded` |
//! | omniclaw PR#391 | `authenticity::a_forged_stale_or_missing_signature_is_401_and_the_true_delivery_still_passes`, `disconnects::hanging_up_inside_the_body_sends_nothing_and_claims_nothing` |
//! | newspack-workspace PR#940 | `upstream_failures::a_502_or_504_of_something_in_between_leaves_the_outcome_unknown`, `suppress::what_was_refused_or_not_sent_is_sent_again` |
//! | ironclaw PR#1621 | `waiting::still_in_flight_after_the_wait_is_503_with_retry_after` |
//! | Svix | `store_outage::delivered_while_redis_is_gone_stands_and_is_recorded_later` |
//! | pywa#229, netflie/whatsapp-cloud-api PR#132 | `batches::a_handler_that_reads_only_the_first_element_sees_every_one` |
//! | botpress PR#15083 | `batches::one_failing_element_makes_the_answer_retryable_and_the_retry_forwards_only_it` |
//! | whatsapp-api-js#290, octokit/webhooks.js#1155, github/docs#3567 | `first_and_duplicate::first_is_forwarded_unchanged_and_second_is_answered_200` |
//! | inngest-js PR#1267, webhook-sentry#15 | `bodies::three_megabytes_pass_plain_and_chunked` |
//! | webhook-proxy#2 | `bodies::framing_that_two_sides_could_read_differently_is_400` |
//! | backstage#28910, microsoft/ghcrawler PR#148, Devlaner PR#353 | `bodies::a_body_over_the_limit_is_413_and_one_at_the_limit_passes` |
//! | worldmonitor#4990 | `store_outage::without_redis_nothing_is_sent_and_the_answer_is_503_in_time` |
//! | loopover PR#8415 | `store_outage::without_redis_deliveries_are_forwarded_and_counted_where_the_route_says_so` |
//! | openmeterio PR#4485 | `store_faults::a_read_only_redis_is_unavailable_for_what_is_new_and_still_tells_duplicates` |
//! | BullMQ | `store_faults::a_redis_that_forgets_is_refused_at_the_start_with_the_setting_to_change`, `store_faults::a_redis_that_comes_back_forgetful_is_unavailable_until_it_persists` |
//! | n8n#20446, n8n#38083 | `parallel::copies_that_wait_while_the_first_is_at_the_handler_are_duplicates_of_it` |
//! | evolution-api#1325, #1746, waha#1384 | `tests/provider_fixtures/evolution::retries_and_the_global_copy_are_the_same_event` |
//! | evolution-api#2110, #1762 | `parallel::different_events_do_not_wait_for_each_other`, `admin_metrics_logs::each_delivery_is_a_line_that_tells_why_and_no_secret` |
//! | smee-client#72 | `admin_metrics_logs::each_delivery_is_a_line_that_tells_why_and_no_secret` |

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test ends where it cannot go on, and says why")]

mod admin_metrics_logs;
mod authenticity;
mod batches;
mod bodies;
mod bounds;
mod commands;
mod commands_diff;
mod commands_keys;
mod commands_stress;
mod config_mistakes;
mod connections;
mod disconnects;
mod first_and_duplicate;
mod hostile;
mod kit;
mod methods_and_routes;
mod observe;
mod parallel;
mod reload;
mod stopping;
mod store_faults;
mod store_outage;
mod support;
mod suppress;
mod survival;
mod unkeyed;
mod upstream_failures;
mod waiting;
