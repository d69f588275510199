//! The page: files that were built from `web/` and come with the program.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "web/dist/"]
#[allow_missing = true]
struct Built;

/// What a program without the page says.
const MISSING: &str = "<!doctype html><meta charset=\"utf-8\"><title>WARP studio</title><p>This program was built without the page (crates/studio/web/dist); \
                       its questions are answered below /api/.";

/// The components of the page as a module for notebooks (anywidget), if the program was built with the page.
pub fn widget() -> Option<String> {
    String::from_utf8(Built::get("widget.js")?.data.into_owned()).ok()
}

/// The file at a path, or that there is none.
pub async fn answer(method: Method, path: Uri, fields: HeaderMap) -> Response {
    let name = match path.path() {
        "/" => "index.html",
        path => path.trim_start_matches('/'),
    };
    let is_read = matches!(method, Method::GET | Method::HEAD);
    let Some(file) = Built::get(name).filter(|_| is_read) else {
        return match name {
            "index.html" if is_read => Html(MISSING).into_response(),
            _ => (StatusCode::NOT_FOUND, "there is nothing here; the page is at /").into_response(),
        };
    };
    let digest = file.metadata.sha256_hash();
    let tag: String = digest[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    // Names below assets/ hold a digest of what is in them.
    let cache = match name.starts_with("assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let known = fields.get(IF_NONE_MATCH).is_some_and(|known| *known == *tag);
    let fields = [(CONTENT_TYPE, content_type(name)), (CACHE_CONTROL, cache), (ETAG, &tag)];
    match known {
        true => (StatusCode::NOT_MODIFIED, fields).into_response(),
        false => (fields, file.data).into_response(),
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "application/octet-stream",
    }
}
