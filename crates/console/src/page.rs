//! The page of a build without the console.

/// Says what is missing and how to add it. No script, no style: the same policy holds for it.
pub(crate) fn without_console(reason: &str) -> String {
    let reason = escape(reason);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Atoll</title></head><body>\n\
         <h1>Atoll is running, without its web console</h1>\n\
         <p>This program was built without the console: {reason}.</p>\n\
         <p>To add it, install Node.js 20 or newer and build again:</p>\n\
         <pre>cargo build --release</pre>\n\
         <p>Everything else works: use kubectl with the kubeconfig that <code>atoll up</code> printed.</p>\n\
         </body></html>\n"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_text_and_nothing_else() {
        let page = without_console("<script>alert(1)</script>");
        assert!(!page.contains("<script>"), "{page}");
        assert!(page.contains("&lt;script&gt;"));
    }
}
