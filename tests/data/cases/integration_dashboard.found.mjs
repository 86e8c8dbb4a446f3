async () => {
            const tried = {};
            const attempt = async (name, act) => {
                try { tried[name] = String(await act()); } catch (error) { tried[name] = error.name; }
            };
            // Called from outside it would be let through.
            await attempt("eval", () => new Promise((done, failed) => setTimeout(() => {
                try { done(new Function("return 1")()); } catch (error) { failed(error); }
            })));
            await attempt("markup", () => { document.body.innerHTML = "<p>x</p>"; return "written"; });
            await attempt("inline", async () => {
                const script = document.createElement("script");
                script.textContent = "window.ran = true";
                document.head.append(script);
                return window.ran ?? "stopped";
            });
            await attempt("elsewhere", () => fetch("https://example.org/"));
            return tried;
        }