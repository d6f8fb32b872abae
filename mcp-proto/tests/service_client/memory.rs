//! A client and its server in one future, whoever polls it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_proto::client::CallError;
use mcp_proto::service::client::Client;
use mcp_proto::service::{NoArguments, Server, Service};

use crate::basics::client;
use crate::rig::{Flag, block_on};

/// What a handler waits for, and who lets it go on from outside.
#[derive(Clone, Default)]
struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);

impl Gate {
    fn open(&self) {
        let mut state = self.0.lock().unwrap();
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    async fn passed(self) {
        poll_fn(|cx| {
            let mut state = self.0.lock().unwrap();
            state.1 = Some(cx.waker().clone());
            if state.0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn is_waited_at(&self) -> bool {
        self.0.lock().unwrap().1.is_some()
    }
}

/// `wait` takes as long as `gate` is closed.
fn waiting(gate: &Gate) -> Service {
    let gate = gate.clone();
    Server::new("waits", "1")
        .tool("wait", move |_, _: NoArguments| {
            let gate = gate.clone();
            async move {
                gate.passed().await;
                Ok("passed")
            }
        })
        .build()
        .unwrap()
}

async fn wait(client: Client) -> Result<String, CallError> {
    client.call_tool("wait", ()).timeout(None).max_time(None).await.map(|result| result.texts())
}

fn poll_with<F: Future>(future: Pin<&mut F>, flag: &Arc<Flag>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(Arc::clone(flag))))
}

/// Nothing is done until somebody else has done something, and then whoever polled last is told.
#[test]
fn the_newest_waker_is_woken_and_only_when_something_happened() {
    let gate = Gate::default();
    let mut test = pin!(client().in_memory(&waiting(&gate), wait));
    let (first, second) = (Arc::<Flag>::default(), Arc::<Flag>::default());
    assert!(poll_with(test.as_mut(), &first).is_pending());
    assert!(gate.is_waited_at());
    assert!(!first.take(), "it wakes itself");
    assert!(poll_with(test.as_mut(), &second).is_pending());
    assert!(!first.take() && !second.take(), "it wakes itself");
    gate.open();
    assert!(second.take(), "the wake-up is lost");
    assert!(!first.take(), "woken is who polls no more");
    let Poll::Ready(done) = poll_with(test.as_mut(), &second) else { panic!("expected to be done") };
    assert_eq!(done.unwrap().unwrap(), "passed");
}

/// A handler's work in another thread ends at any moment, also while the future goes to sleep.
#[test]
fn no_wake_up_of_another_thread_is_lost() {
    for _ in 0..200 {
        let gate = Gate::default();
        let opener = gate.clone();
        let thread = std::thread::spawn(move || {
            while !opener.is_waited_at() {
                std::thread::yield_now();
            }
            opener.open();
        });
        let done = block_on(client().in_memory(&waiting(&gate), wait)).unwrap().unwrap();
        assert_eq!(done, "passed");
        thread.join().unwrap();
    }
}

/// What yields is still at work: its time does not run out, however often it does.
#[test]
fn time_stands_still_while_something_wakes_itself() {
    let service = Server::new("yields", "1")
        .tool("yields", |_, _: NoArguments| async {
            let mut left = 10_000;
            poll_fn(|cx| {
                left -= 1;
                cx.waker().wake_by_ref();
                if left == 0 { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            Ok("done")
        })
        .build()
        .unwrap();
    let test = client().in_memory(&service, async |client| {
        client.call_tool("yields", ()).timeout(Duration::from_millis(1)).await
    });
    assert_eq!(block_on(test).unwrap().unwrap().texts(), "done");
}

/// Some runtimes make whatever is polled too often within one poll wait and wake itself: who polls gets a turn.
#[test]
fn what_wakes_itself_until_the_next_poll_gets_it() {
    let outer = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&outer);
    let service = Server::new("needs a poll", "1")
        .tool("waits", move |_, _: NoArguments| {
            let seen = Arc::clone(&seen);
            async move {
                poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    if seen.load(Ordering::SeqCst) == 2 { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                Ok("polled")
            }
        })
        .build()
        .unwrap();
    let mut test = pin!(client().in_memory(&service, async |client| client.call_tool("waits", ()).await));
    let flag = Arc::<Flag>::default();
    outer.store(1, Ordering::SeqCst);
    assert!(poll_with(test.as_mut(), &flag).is_pending());
    assert!(flag.take(), "it is not at rest");
    outer.store(2, Ordering::SeqCst);
    let Poll::Ready(done) = poll_with(test.as_mut(), &flag) else { panic!("expected to be done") };
    assert_eq!(done.unwrap().unwrap().texts(), "polled");
}

/// It may be spawned, and outlive the service it was made with.
#[test]
fn it_may_move_to_another_thread() {
    let gate = Gate::default();
    let test = client().in_memory(&waiting(&gate), wait);
    gate.open();
    let thread = std::thread::spawn(move || block_on(test).unwrap().unwrap());
    assert_eq!(thread.join().unwrap(), "passed");
}
