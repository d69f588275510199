// Builds of the page, and settings for work on it.
//
//   vite build                    index.html, assets/*  the page
//   vite build --mode widget      widget.js             widget for notebooks, with its styles
//   vite --mode simulated         the page against a simulated drive (dev/), never shipped
//
// File names contain a digest of the content. They do not depend on the time or place of the build,
// so two builds are equal to the byte.
import { defineConfig, type PluginOption, type ProxyOptions } from "vite";

/** Proxy to a server, which sees the requests as those of its own page. */
function behind(target: string): ProxyOptions {
    return { target, ws: true, changeOrigin: true, headers: { origin: target } };
}

export default defineConfig(async ({ mode }) => {
    const plugins: PluginOption[] = [];
    if (mode === "simulated") {
        const { simulatedDrive } = await import("./dev/server.ts");
        plugins.push(simulatedDrive());
    }
    // `WARP_STUDIO=http://127.0.0.1:PORT vite` connects the page to a real server.
    const served = process.env["WARP_STUDIO"];
    const widget = mode === "widget";
    return {
        plugins,
        base: "./",
        define: widget ? { "process.env.NODE_ENV": JSON.stringify("production") } : {},
        server: { host: "127.0.0.1", port: 5178, ...(served === undefined ? {} : { proxy: { "/api": behind(served) } }) },
        preview: { host: "127.0.0.1", port: 5178, ...(served === undefined ? {} : { proxy: { "/api": behind(served) } }) },
        build: {
            target: "es2022",
            outDir: "dist",
            emptyOutDir: !widget,
            modulePreload: { polyfill: false },
            reportCompressedSize: true,
            ...(widget
                ? {
                      lib: { entry: "src/widget.tsx", formats: ["es" as const], fileName: () => "widget.js" },
                  }
                : {}),
        },
        // The limit is generous for a machine that compiles at the same time. No test waits for
        // anything.
        test: { include: ["test/**/*.test.ts"], environment: "node", testTimeout: 60_000 },
    };
});
