// How the page is built, and how it is worked on.
//
//   vite build                    index.html, assets/*  the page
//   vite build --mode widget      widget.js             the components for notebooks, one file with its styles
//   vite --mode simulated         the page against a simulated drive (dev/), never shipped
//
// Names of files hold a digest of their content, nothing of when or where they were built, so that two builds are equal to the byte.
import { defineConfig, type PluginOption, type ProxyOptions } from "vite";

/** A server behind this one, which is told that its own page asks. */
function behind(target: string): ProxyOptions {
    return { target, ws: true, changeOrigin: true, headers: { origin: target } };
}

export default defineConfig(async ({ mode }) => {
    const plugins: PluginOption[] = [];
    if (mode === "simulated") {
        const { simulatedDrive } = await import("./dev/server.ts");
        plugins.push(simulatedDrive());
    }
    // `WARP_STUDIO=http://127.0.0.1:PORT vite` works on the page in front of a real server.
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
        // A machine that compiles beside is slow; nothing here waits for anything.
        test: { include: ["test/**/*.test.ts"], environment: "node", testTimeout: 60_000 },
    };
});
