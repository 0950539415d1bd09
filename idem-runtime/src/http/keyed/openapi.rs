//! A keyed route in an OpenAPI document of utoipa's.

use axum::http::header::RETRY_AFTER;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{Content, HeaderBuilder, OpenApi, RefOr, Required};

use super::super::problem::{PROBLEM_JSON, Problem};
use super::header::LONGEST;
use super::route::KeyedRoute;
use crate::error::{Error, ErrorKind};

/// What a description says of a header's name: its case does not matter.
const NAME: &str = "Idempotency-Key";

/// What clients are to expect because of the key. The first is for routes that require one.
const ANSWERS: [Problem; 4] = [Problem::KeyMissing, Problem::KeyMalformed, Problem::InFlight, Problem::KeyReused];

impl KeyedRoute {
    /// Adds to the route's operations in an OpenAPI document what this layer does to them: the header `Idempotency-Key`, and
    /// the answers 400, 409 and 422. What the document says of them already stays. Can be called twice.
    ///
    /// ```
    /// use idem_runtime::{KeyedRoute, http_route};
    /// use utoipa::OpenApi;
    ///
    /// http_route! {
    ///     static CREATE_PAYMENT: KeyedRoute = KeyedRoute::new("create_payment", "POST /payments").retention("24h");
    /// }
    ///
    /// #[utoipa::path(post, path = "/payments", responses((status = 201, description = "Created")))]
    /// async fn create_payment() {}
    ///
    /// #[derive(OpenApi)]
    /// #[openapi(paths(create_payment))]
    /// struct Api;
    ///
    /// # fn main() {
    /// let mut document = Api::openapi();
    /// CREATE_PAYMENT.describe(&mut document).unwrap();
    /// # assert!(document.to_json().unwrap().contains("Idempotency-Key"));
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Registry`] when the document has no operation of one of the route's methods at its path, such as for a
    /// document in which a prefix stands before all paths.
    pub fn describe(&'static self, document: &mut OpenApi) -> Result<(), Error> {
        let route = self.endpoint().route;
        let (methods, path) = route.split_once(' ').unwrap_or_default();
        for method in methods.split(',') {
            let item = document.paths.paths.get_mut(path);
            let Some(operation) = item.and_then(|item| operation(item, method)) else {
                let name = self.endpoint().name;
                let detail = format!("the OpenAPI document has no `{method} {path}`, which the route `{name}` names");
                return Err(Error::new(ErrorKind::Registry).detail(detail));
            };
            describe(operation, self.is_required());
        }
        Ok(())
    }
}

fn operation<'item>(item: &'item mut PathItem, method: &str) -> Option<&'item mut Operation> {
    match method {
        "GET" => item.get.as_mut(),
        "PUT" => item.put.as_mut(),
        "POST" => item.post.as_mut(),
        "DELETE" => item.delete.as_mut(),
        "PATCH" => item.patch.as_mut(),
        other => item.additional_operations.get_mut(other),
    }
}

fn describe(operation: &mut Operation, required: bool) {
    let parameters = operation.parameters.get_or_insert_default();
    let is_header = |parameter: &RefOr<_>| matches!(parameter, RefOr::T(it) if is_key(it));
    if !parameters.iter().any(is_header) {
        let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).min_length(Some(1));
        let parameter = ParameterBuilder::new()
            .name(NAME)
            .parameter_in(ParameterIn::Header)
            .required(if required { Required::True } else { Required::False })
            .description(Some(
                "Unique to the operation, such as a UUID. The same request with the same key gets the response of the \
                 first one and has no further effect.",
            ))
            .schema(Some(text.max_length(Some(LONGEST))));
        parameters.push(parameter.build().into());
    }
    let answers = if required { &ANSWERS[..] } else { &ANSWERS[1..] };
    for &problem in answers {
        let status = problem.status().as_str().to_owned();
        operation.responses.responses.entry(status).or_insert_with(|| answer(problem, answers).build().into());
    }
}

fn is_key(parameter: &utoipa::openapi::path::Parameter) -> bool {
    parameter.parameter_in == ParameterIn::Header && parameter.name.eq_ignore_ascii_case(NAME)
}

/// The problem, with those of the same status.
fn answer(problem: Problem, answers: &[Problem]) -> ResponseBuilder {
    let of_the_status = answers.iter().filter(|other| other.status() == problem.status());
    let descriptions: Vec<_> = of_the_status.map(|one| format!("`{}`: {}", one.code(), one.detail())).collect();
    let text = |words: &str| {
        let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String));
        text.description(Some(words))
    };
    let problem_details = ObjectBuilder::new()
        .property("type", text("`about:blank`"))
        .property("title", text("The status in words"))
        .property("status", ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer)))
        .property("code", text("For programs"))
        .property("detail", text("For people"));
    let response = ResponseBuilder::new()
        .description(descriptions.join("; "))
        .content(PROBLEM_JSON, Content::new(Some(problem_details)));
    if !problem.comes_again() {
        return response;
    }
    let seconds = ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer));
    let header = HeaderBuilder::new()
        .schema(Some(seconds))
        .description(Some("Seconds until the request is worth sending again"));
    response.header(RETRY_AFTER.as_str(), header.build())
}
