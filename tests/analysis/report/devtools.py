# SPDX-License-Identifier: MIT
#
# A browser that is used as a person uses it: real clicks, real keys, a window of any size. Over the DevTools protocol,
# by two pipes (--remote-debugging-pipe): no port, nothing but Python's own library.
import json
import os
import select
import subprocess
import time

PATIENCE_S = 60
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40, "+": 187}


class Page:
    """One page, in one browser; ends with it. Its `errors` are what the page complained of."""

    def __init__(self, program, profile):
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--disable-dev-shm-usage", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        # What it reads is its descriptor 3, what it writes 4.
        self.process = subprocess.Popen(["bash", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{back_write}', program, *options],
                                        pass_fds=(to_read, back_write), stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(back_write)
        self.number, self.buffer, self.session, self.errors = 0, b"", None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(domain + ".enable")

    def close(self):
        self.process.kill()
        self.process.wait()

    def message(self, deadline):
        """The next one from the browser."""
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.back, 1 << 20)
            if not piece:
                raise EOFError("the browser has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def notice(self, event, told):
        """What the page complains of: an exception, or what it may not fetch or run."""
        if event == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif event == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in told["args"]))
        elif event == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.errors.append(told["entry"]["text"])

    def ask(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            reply = self.message(deadline)
            self.notice(reply.get("method"), reply.get("params"))
            if reply.get("id") == self.number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']['message']}")
                return reply["result"]

    def run(self, script):
        """The value of an expression on the page; of a promise, what it comes to."""
        reply = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(f"{script}: {reply['exceptionDetails']}")
        return reply["result"].get("value")

    def open(self, file, width, height, mobile=None):
        """The page at the file, which may have a #fragment, when it is ready, in a window of that size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600 if mobile is None else mobile)
        for url in ("about:blank", "file://" + os.path.abspath(file)):  # not from a page that is ready, nor from a fragment to another
            self.ask("Page.navigate", url=url)
        deadline = time.monotonic() + PATIENCE_S
        while not self.run("document.readyState === 'complete' && document.documentElement.dataset.ready === 'yes'"):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{file} does not become ready")
            time.sleep(.02)
        self.settle()

    def settle(self):
        """Two pictures later."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def becomes(self, script, good=bool, patience_s=3):
        """The expression's value once it is good, or the last one when that takes too long: what is out of sight is
        drawn later."""
        deadline = time.monotonic() + patience_s
        while True:
            value = self.run(script)
            if good(value) or time.monotonic() > deadline:
                return value
            self.settle()

    def key(self, key, shift=False):
        common = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key], "modifiers": 8 if shift else 0}
        text = {"text": {"Enter": "\r"}.get(key, key)} if key in ("Enter", "+") else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **common, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, element):
        """A click in the middle of what is seen of an element, which the reader has scrolled to. False: it is
        not to be seen, or something lies over it. `element`: an expression."""
        at = self.run(f"""(() => {{
            const one = {element};
            if (!one || !one.checkVisibility()) return null;
            one.scrollIntoView({{block: 'center', behavior: 'instant'}});
            const box = one.getBoundingClientRect(), x = box.left + Math.min(box.width, innerWidth) / 2, y = box.top + box.height / 2;
            return one.contains(document.elementFromPoint(x, y)) ? [x, y] : null; }})()""")
        if not at:
            return False
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="none" if kind == "mouseMoved" else "left",
                     clickCount=0 if kind == "mouseMoved" else 1)
        self.settle()
        return True
