//! Clients that need an access token.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_io::client::http::Remote;
use mcp_io::client::{Connect, ConnectError, Host, Servers};
use mcp_proto::client::http::{Token, Unauthorized};
use mcp_proto::client::{CallError, Mode};
use mcp_proto::http::ProtectedResource;
use mcp_proto::server::Principal;
use mcp_proto::service::client::{Client, Refusal};
use mcp_proto::service::{Authorizer, BoxFuture, TokenError, TokenVerifier, Verified};

use super::served;
use crate::rt;
use crate::suite::connect::{client, echo};
use crate::suite::service::Stage;

const RESOURCE: &str = "http://localhost/mcp";
const METADATA: &str = "http://localhost/.well-known/oauth-protected-resource/mcp";

/// Lets in who has the word of the day.
#[derive(Clone)]
struct Door(Arc<Mutex<&'static str>>);

impl TokenVerifier for Door {
    fn verify(&self, token: &str) -> BoxFuture<Result<Verified, TokenError>> {
        let verified = match token == *self.0.lock().unwrap() {
            true => Ok(Verified::new(Principal::new("alice"), [RESOURCE])),
            false => Err(TokenError::Invalid("another word".into())),
        };
        Box::pin(async { verified })
    }
}

fn guarded(stage: &Stage) -> (Door, SocketAddr, impl Future) {
    let door = Door(Arc::new(Mutex::new("sesame")));
    let resource = ProtectedResource::builder(RESOURCE).authorization_server("http://localhost:9000");
    let authorizer = Authorizer::new(resource.build().unwrap(), door.clone());
    let (address, serving) = served(stage, |http| http.authorizer(authorizer));
    (door, address, serving)
}

fn remote(address: SocketAddr) -> Remote<rt::Runtime> {
    Remote::new(rt::RUNTIME, &format!("http://{address}/mcp"))
}

async fn who(client: &Client) -> String {
    client.call_tool("who", ()).await.unwrap().texts()
}

#[test]
fn a_token_is_sent_with_each_request() {
    rt::run(async {
        let stage = Stage::default();
        let (_, address, _serving) = guarded(&stage);
        for mode in [Mode::Modern, Mode::Legacy] {
            let knows = client().mode(mode).connect(remote(address).bearer("sesame")).await.unwrap();
            assert_eq!(who(&knows).await, "alice");
            for stranger in [remote(address), remote(address).bearer("barley")] {
                let refused = client().mode(mode).connect(stranger).await.unwrap_err();
                let ConnectError::Failed(CallError::Unauthorized(why)) = refused else {
                    panic!("{refused:?}");
                };
                let challenge = why.bearer().unwrap();
                assert_eq!((why.status, challenge.resource_metadata()), (401, Some(METADATA)));
            }
            knows.close().await;
        }
    });
}

/// A token is got when the server asks for one, and what was refused is sent again with it.
#[test]
fn a_token_is_got_when_the_server_asks_for_one() {
    rt::run(async {
        let stage = Stage::default();
        for mode in [Mode::Auto, Mode::Modern, Mode::Legacy] {
            let (door, address, _serving) = guarded(&stage);
            let asked = Arc::<Mutex<Vec<Unauthorized>>>::default();
            let (heard, word) = (Arc::clone(&asked), door.clone());
            let client = client().mode(mode).on_unauthorized(move |why| {
                heard.lock().unwrap().push(why);
                let word = word.clone();
                async move {
                    // Someone is asked.
                    rt::pause().await;
                    let word = *word.0.lock().unwrap();
                    Token::bearer(word).map_err(|error| Refusal::new(error.to_string()))
                }
            });
            let client = client.connect(remote(address)).await.unwrap();
            assert_eq!(client.server().version.is_modern(), mode != Mode::Legacy);
            assert_eq!(who(&client).await, "alice");
            assert_eq!(echo(&client, "on").await, "on");
            let once = |asked: &[Unauthorized]| {
                let [why] = asked else { panic!("{asked:?}") };
                assert_eq!((why.status, why.bearer().unwrap().resource_metadata()), (401, Some(METADATA)));
                assert_eq!(why.url.to_string(), format!("http://{address}/mcp"));
            };
            once(&asked.lock().unwrap());

            // The word changes while the client is in use: one search is enough for all that wait.
            asked.lock().unwrap().clear();
            *door.0.lock().unwrap() = "open";
            let calls = (0..20).map(|_| {
                let client = client.clone();
                rt::spawn(async move { assert_eq!(who(&client).await, "alice") })
            });
            for call in calls.collect::<Vec<_>>() {
                call.await;
            }
            assert!(!asked.lock().unwrap().is_empty());
            client.close().await;
        }
    });
}

/// Nobody is asked for ever, and who gives none is not asked again.
#[test]
fn a_token_that_cannot_be_had_is_an_error() {
    rt::run(async {
        let stage = Stage::default();
        let (_, address, _serving) = guarded(&stage);
        for (token, most) in [(Some("barley"), 3), (None, 1)] {
            let asked = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&asked);
            let client = client().on_unauthorized(move |_| {
                counted.fetch_add(1, Ordering::SeqCst);
                async move {
                    let token = token.ok_or_else(|| Refusal::new("no"))?;
                    Token::bearer(token).map_err(|error| Refusal::new(error.to_string()))
                }
            });
            let refused = client.connect(remote(address)).await.unwrap_err();
            assert!(
                matches!(refused, ConnectError::Failed(CallError::Unauthorized(_))),
                "{token:?}: {refused:?}"
            );
            assert_eq!(asked.load(Ordering::SeqCst), most);
        }
    });
}

/// The headers of a configuration are sent.
#[test]
fn a_configuration_has_a_token_in_its_headers() {
    rt::run(async {
        let stage = Stage::default();
        let (_, address, _serving) = guarded(&stage);
        let text = format!(
            r#"{{"servers":{{"far":{{"url":"http://{address}/mcp","headers":{{"Authorization":"Bearer ${{WORD}}"}}}}}}}}"#
        );
        let servers = Servers::parse_with(&text, |name| (name == "WORD").then(|| "sesame".into())).unwrap();
        let host = Host::new(rt::RUNTIME, client());
        assert!(host.add_all(&servers).is_empty());
        host.ready().await;
        assert_eq!(host.call_tool("far__who", ()).unwrap().await.unwrap().texts(), "alice");
        host.close().await;
    });
}
