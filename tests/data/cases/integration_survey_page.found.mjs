async () => {
            const tried = {};
            const attempt = async (name, work) => {
                try { tried[name] = (await work()) ?? "done"; } catch (error) { tried[name] = error.name; }
            };
            window.ran = false;
            await new Promise((done) => setTimeout(done)); // what is evaluated from outside may evaluate
            await attempt("html", () => { document.body.innerHTML = "<p>x</p>"; });
            await attempt("script", () => {
                const made = document.createElement("script");
                made.text = "ran = true";
                document.body.append(made);
            });
            await attempt("eval", () => window.eval("ran = true"));
            await attempt("host", () => fetch("https://example.org/"));
            await attempt("frame", () => new Promise((done) => {
                const told = ({ effectiveDirective: by }) => by.startsWith("frame") && done(by);
                addEventListener("securitypolicyviolation", told);
                const frame = document.createElement("iframe");
                frame.src = "/me";
                document.body.append(frame);
            }));
            await attempt("handler", () => { document.body.setAttribute("onclick", "ran = true"); });
            document.body.click();
            return { ...tried, ran: window.ran };
        }