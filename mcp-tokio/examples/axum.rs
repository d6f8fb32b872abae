//! The endpoint as one route of an application that has others.
//!
//! ```sh
//! cargo run -p mcp-tokio --features http --example tokio-axum -- 127.0.0.1:8000
//! ```

use std::error::Error;
use std::future::Future;
use std::{env, io};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use mcp_proto::http::Settings;
use mcp_proto::server::Principal;
use mcp_proto::service::http::HttpService;
use mcp_proto::service::{BuildError, NoArguments, Server};
use mcp_tokio::{Responder, Tokio};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".into());
    let listener = TcpListener::bind(address).await?;
    serve(listener, mount()?, async {
        let _ = tokio::signal::ctrl_c().await;
    })
    .await?;
    Ok(())
}

pub(crate) fn mount() -> Result<Responder, BuildError> {
    let service = Server::new("demo", "1.0.0")
        .tool("who", |ctx, _: NoArguments| async move {
            Ok(ctx.principal().map_or_else(|| "nobody".to_owned(), |who| who.id().to_owned()))
        })
        .build()?;
    Ok(Responder::new(HttpService::new(&service, Settings::default()), Tokio::current()))
}

pub(crate) async fn serve(
    listener: TcpListener,
    mcp: Responder,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let app = Router::new()
        .route("/", get(|| async { "The endpoint is at /mcp." }))
        .route_service("/mcp", mcp.clone())
        .layer(middleware::from_fn(sign_in));
    axum::serve(listener, app)
        .with_graceful_shutdown(async move {
            shutdown.await;
            // Streams end by themselves only when they are told to.
            mcp.close();
        })
        .await
}

/// Whatever the application does to know its users; the endpoint takes its word for it.
async fn sign_in(mut request: Request, next: Next) -> Response {
    let user = request.headers().get("x-user").and_then(|user| user.to_str().ok());
    if let Some(user) = user.map(Principal::new) {
        request.extensions_mut().insert(user);
    }
    next.run(request).await
}
