//! The page: files that were built from `web/` and come with the program.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use rust_embed::RustEmbed;
use target::http::{Answer, Cache, compressed};

#[derive(RustEmbed)]
#[folder = "web/dist/"]
#[allow_missing = true]
struct Built;

/// What a program without the page says.
const MISSING: &str = "<!doctype html><meta charset=\"utf-8\"><title>WARP studio</title><p>This program was built without the page (crates/studio/web/dist); \
                       its questions are answered below /api/.";

struct Asset {
    content_type: &'static str,
    plain: Bytes,
    compressed: Bytes,
    tag: String,
}

/// All files by their paths, compressed once.
static ASSETS: LazyLock<BTreeMap<String, Asset>> = LazyLock::new(|| {
    let asset = |name: &str| {
        let file = Built::get(name)?;
        let plain = Bytes::from(file.data.into_owned());
        let tag: String = file.metadata.sha256_hash()[..12]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let asset = Asset {
            content_type: content_type(name),
            compressed: compressed(&plain),
            plain,
            tag,
        };
        Some((format!("/{name}"), asset))
    };
    Built::iter().filter_map(|name| asset(&name)).collect()
});

/// Makes the files ready, so that the first page does not wait for it.
pub fn prepare() -> usize {
    ASSETS.len()
}

/// The components of the page as a module for notebooks (anywidget), if the program was built with the page.
pub fn widget() -> Option<&'static str> {
    let asset = ASSETS.get("/widget.js")?;
    std::str::from_utf8(&asset.plain).ok()
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

/// The file at a path, if there is one.
pub fn answer(path: &str, takes_gzip: bool) -> Option<Answer> {
    let path = if path == "/" { "/index.html" } else { path };
    let Some(asset) = ASSETS.get(path) else {
        return (path == "/index.html").then(|| Answer::new(200, "text/html; charset=utf-8", MISSING));
    };
    let is_compressed = takes_gzip && asset.compressed.len() < asset.plain.len();
    // Names below assets/ hold a digest of what is in them.
    let cache = if path.starts_with("/assets/") {
        Cache::Forever
    } else {
        Cache::Tagged
    };
    Some(Answer {
        is_compressed,
        cache,
        tag: Some(asset.tag.clone()),
        ..Answer::new(
            200,
            asset.content_type,
            if is_compressed {
                asset.compressed.clone()
            } else {
                asset.plain.clone()
            },
        )
    })
}
