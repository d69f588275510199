//! Serves the files of the page, which are built from `web/` and embedded in the program.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "web/dist/"]
#[allow_missing = true]
struct PageAssets;

const MISSING: &str = "<!doctype html><meta charset=\"utf-8\"><title>WARP studio</title><p>This program was built without the page (crates/studio/web/dist); \
                       its questions are answered below /api/.";

/// Module with the page's components for notebooks (anywidget), `None` if the program was built
/// without the page.
pub fn widget() -> Option<String> {
    String::from_utf8(PageAssets::get("widget.js")?.data.into_owned()).ok()
}

pub async fn serve_asset(method: Method, path: Uri, fields: HeaderMap) -> Response {
    let name = match path.path() {
        "/" => "index.html",
        path => path.trim_start_matches('/'),
    };
    let is_read = matches!(method, Method::GET | Method::HEAD);
    let Some(file) = PageAssets::get(name).filter(|_| is_read) else {
        return match name {
            "index.html" if is_read => Html(MISSING).into_response(),
            _ => (StatusCode::NOT_FOUND, "there is nothing at this address. The page is at /").into_response(),
        };
    };
    let digest = file.metadata.sha256_hash();
    let tag: String = digest[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{tag}\"");
    // Names below assets/ contain a digest of the file.
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
