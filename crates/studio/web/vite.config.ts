// How the page is built, and how it is worked on.
//
//   vite build                    index.html, assets/*  the page
//   vite build --mode widget      widget.js             the components for notebooks, one file with its styles
//   vite --mode simulated         the page against a simulated drive (dev/), never shipped
//
// Names of files hold a digest of their content, nothing of when or where they were built, so that two builds are equal to the byte.
import { defineConfig, type PluginOption } from "vite";

export default defineConfig(async ({ mode }) => {
    const plugins: PluginOption[] = [];
    if (mode === "simulated") {
        const { simulatedDrive } = await import("./dev/server.ts");
        plugins.push(simulatedDrive());
    }
    const widget = mode === "widget";
    return {
        plugins,
        base: "./",
        define: widget ? { "process.env.NODE_ENV": JSON.stringify("production") } : {},
        server: { host: "127.0.0.1", port: 5178 },
        preview: { host: "127.0.0.1", port: 5178 },
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
        test: { include: ["test/**/*.test.ts"], environment: "node" },
    };
});
