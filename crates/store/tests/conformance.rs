//! One behaviour, all engines.
#![allow(clippy::unwrap_used, missing_docs)]

mod suite;

use atoll_store::{Options, Retention};
use suite::history::{Load, check_history};
use suite::{Fixture, cases, etcd::etcd, memory, redb};

macro_rules! conformance {
    ($($engine:ident),*: $($case:ident),* $(,)?) => {
        conformance!(@each [$($engine),*] [$($case),*]);
    };
    (@each [$($engine:ident),*] $cases:tt) => { $(conformance!(@engine $engine $cases);)* };
    (@engine $engine:ident [$($case:ident),*]) => {
        mod $engine {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                if let Some(fixture) = super::$engine(super::Options::default()).await {
                    super::cases::$case(fixture).await;
                }
            })*

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn history_goes_when_it_is_old_and_long_enough() {
                let (options, now) = super::cases::stopped_clock();
                if let Some(fixture) = super::$engine(options).await {
                    super::cases::history_goes_when_it_is_old_and_long_enough(fixture, now).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn history_is_bounded_in_bytes() {
                let retention = super::Retention { bytes: 200_000, ..Default::default() };
                if let Some(fixture) = super::$engine(super::Options { retention, ..Default::default() }).await {
                    super::cases::history_is_bounded_in_bytes(fixture).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn concurrent_histories_are_linearizable() {
                if let Some(fixture) = super::$engine(super::Options::default()).await {
                    super::linearizable(fixture).await;
                }
            }
        }
    };
}

conformance! { memory, redb, etcd:
    root_always_exists_and_instances_have_names_and_numbers,
    a_transaction_happens_only_if_all_expectations_hold,
    a_transaction_has_one_revision_and_its_last_write_per_key_counts,
    a_transaction_without_effect_makes_no_event,
    a_recreated_key_has_a_new_creation_revision,
    snapshots_show_the_past_until_it_is_compacted,
    ranges_go_by_prefix_and_continue_after_a_key,
    a_watch_gives_every_change_once_and_in_order,
    an_idle_watch_wakes_for_its_scope_only_and_progresses_with_all,
    watches_of_the_future_and_of_compacted_history_are_refused,
    a_new_instance_can_be_watched_from_its_beginning,
    a_removal_shows_the_last_state_the_deleter_gave,
    instances_are_isolated_and_end_with_their_watches,
    the_feed_tells_of_all_instances,
    usage_counts_objects_and_bytes,
    concurrent_increments_are_all_counted,
    readers_never_see_half_a_transaction,
}

async fn linearizable(fixture: Fixture) {
    let id = fixture.instance().await;
    for seed in 0..3 {
        let load = Load { users: 8, steps: 150, keys: 3, seed: seed * 1000 };
        let id = if seed == 0 { id } else { fixture.engine.create_instance(&format!("i{seed}")).await.unwrap() };
        check_history(fixture.engine.clone(), id, load, async {}).await;
    }
}
