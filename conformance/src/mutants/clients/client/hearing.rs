//! What the client hears, and what follows from it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, Job, Kind, Said, Way};

impl Client {
    /// Pumps until the job is done or so long.
    pub(crate) fn wait(&mut self, job: usize, limit: Duration) {
        let until = Instant::now() + limit;
        while !self.jobs[job].is_done() && Instant::now() < until && !self.again {
            self.pump(until);
        }
    }

    /// Takes one thing that came; whether something may still come.
    pub(crate) fn pump(&mut self, until: Instant) -> bool {
        let next = self.jobs.iter().filter(|job| job.report.is_none()).filter_map(|job| job.due()).min();
        let until = next.map_or(until, |deadline| until.min(deadline));
        let left = until.saturating_duration_since(Instant::now());
        match self.heard.recv_timeout(left) {
            Ok(said) => self.take(said),
            Err(_) => {
                let before = Instant::now();
                self.late(before);
                return next.is_some();
            }
        }
        true
    }

    pub(super) fn take(&mut self, said: Said) {
        match said {
            Said::Junk(line) => {
                self.junk += 1;
                if self.is("answers-junk") && self.junk < 50 {
                    let error = json!({"code": -32700, "message": line});
                    self.respond(&Value::Null, Err(error));
                }
                if self.is("dies-of-junk") {
                    self.broken = Some("junk".to_owned());
                    self.fail_all("junk");
                }
            }
            Said::Head(number, headers) => {
                let session = headers.iter().find(|(name, _)| name == "mcp-session-id");
                if let Some((_, session)) = session
                    && self.numbers.get(&number).is_some_and(|id| self.open.contains_key(id))
                {
                    self.session = Some(session.clone());
                }
                self.heads.insert(number, headers);
            }
            Said::Event(..) => {}
            Said::Message(number, Value::Array(items)) => {
                if self.version.as_deref() == Some("2025-03-26") && !self.is("no-batches") {
                    for item in items {
                        self.message(number, &item);
                    }
                }
            }
            Said::Message(number, message) => self.message(number, &message),
            Said::End(number, status, body, last, retry) => self.ended(number, status, &body, last, retry),
            Said::Gone => {
                self.again = true;
                if self.is_modern() && !self.is("no-second-listen") && !self.server.is_null() {
                    let listens = |job: &Job| matches!(job.kind, Kind::Listen { acknowledged: true });
                    if let Some(job) = self.jobs.iter().position(listens) {
                        self.open.clear();
                        self.fail_all("the server has gone");
                        let params = self.jobs[job].params.clone();
                        self.jobs[job].report = None;
                        self.send(job, "subscriptions/listen", params);
                        return;
                    }
                }
                if self.version.is_some() && !self.jobs.is_empty() {
                    self.fail_all("the server has gone");
                }
                self.open.clear();
            }
        }
    }

    pub(super) fn fail_all(&mut self, problem: &str) {
        for job in 0..self.jobs.len() {
            let listens = matches!(self.jobs[job].kind, Kind::Listen { acknowledged: true });
            if !self.jobs[job].is_done() && !listens {
                self.fail(job, problem);
            }
        }
    }

    pub(super) fn ended(
        &mut self,
        number: u64,
        status: u16,
        body: &str,
        last: Option<String>,
        retry: Option<u64>,
    ) {
        if self.stream == Some(number) {
            if status == 200 && last.is_some() && !self.is("no-resume") {
                self.listen_to_session(last);
            }
            return;
        }
        let Some(id) = self.numbers.remove(&number) else { return };
        let Some(job) = self.open.get(&id).copied() else { return };
        self.jobs[job].status = status;
        if self.posts.is_some() && (200..300).contains(&status) {
            return;
        }
        if status == 404 && self.session.is_some() && body.is_empty() && !self.is_modern() {
            let old = self.session.take();
            if self.is("old-session") {
                self.session = old;
            }
            let (method, params) = (self.jobs[job].method.clone(), self.jobs[job].params.clone());
            self.open.remove(&id);
            if !std::mem::replace(&mut self.jobs[job].retried, true)
                && !self.is("no-new-session")
                && self.handshake().is_ok()
            {
                self.send(job, &method, params);
                return;
            }
            self.fail(job, "the session is over");
            return;
        }
        let redirect = self.heads.get(&number).and_then(|headers| {
            headers.iter().find(|(name, _)| name == "location").map(|(_, value)| value.clone())
        });
        if let Some(place) = redirect.filter(|_| matches!(status, 307 | 308)) {
            let origin = |url: &str| url.split('/').take(3).collect::<Vec<_>>().join("/");
            let place = if place.starts_with('/') { format!("{}{place}", origin(&self.url)) } else { place };
            let same = origin(&place) == origin(&self.url);
            if same || self.is("follows-anywhere") {
                let mut params = self.jobs[job].params.clone();
                if let Some(inner) = params.as_object_mut() {
                    inner.remove("_meta");
                }
                let method = self.jobs[job].method.clone();
                let kept = std::mem::replace(&mut self.url, place);
                self.send(job, &method, params);
                self.url = kept;
                return;
            }
        }
        if status == 200
            && !self.is_modern()
            && last.is_some()
            && !self.is("no-resume")
            && self.resumed.len() < 5
        {
            // The stream was closed before the answer: it goes on elsewhere.
            self.resumed.insert(number);
            if !self.is("no-retry-time") {
                std::thread::sleep(Duration::from_millis(retry.unwrap_or(0)));
            }
            let mut headers = self.session_headers();
            headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
            if !self.is("no-last-event-id") {
                headers.push(("Last-Event-ID".to_owned(), last.unwrap_or_default()));
            }
            let url = self.url.clone();
            if let Way::Web(web) = &mut self.way {
                let number = web.send(&url, "GET", &headers, None);
                self.numbers.insert(number, id);
            }
            return;
        }
        self.open.remove(&id);
        if self.jobs[job].outcome.is_none() {
            self.jobs[job].ended = true;
            self.fail(job, &format!("status {status}: {body}"));
        }
    }

    pub(super) fn message(&mut self, number: u64, message: &Value) {
        if let Some(method) = message["method"].as_str() {
            match message.get("id") {
                Some(id) => self.asked(method, id, &message["params"]),
                None => self.noticed(method, &message["params"]),
            }
            return;
        }
        let id = match &message["id"] {
            Value::Number(id) => id.as_i64(),
            Value::String(id) if self.is("loose-ids") => id.parse().ok(),
            Value::Null if self.is("error-without-id-fails-all") && message.get("error").is_some() => {
                self.fail_all("an error without id");
                None
            }
            _ => None,
        };
        let job = id.and_then(|id| self.open.remove(&id));
        let job = match job {
            None if self.is("takes-any-response") && !self.open.is_empty() => {
                self.open.pop_first().map(|(_, job)| job)
            }
            other => other,
        };
        let Some(job) = job else { return };
        let _ = number;
        if message.get("result").is_some() == message.get("error").is_some_and(|error| !error.is_null())
            && !self.is("both-is-fine")
        {
            self.fail(job, "neither a result nor an error");
            return;
        }
        match message.get("error").filter(|error| !error.is_null()) {
            Some(error) => self.refused(job, error.clone()),
            None => self.done(job, message["result"].clone()),
        }
    }
}
