// Browsers start no workers for pages that are opened as files. There the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.frame = frame;
      this.scope = frame.contentWindow;
      // What the script calls as a worker: messages go to the page, and further scripts are loaded into the frame.
      this.scope.postMessage = data => this.deliver(this, data);
      this.scope.importScripts = (...urls) => Promise.all(urls.map(each => this.load(each)));
      this.loaded = this.load(url);
    }

    load(url) {
      const script = this.scope.document.createElement("script");
      script.src = url;
      const done = new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${url} cannot be loaded`));
      });
      this.scope.document.body.append(script);
      return done;
    }

    deliver(target, data) {
      const event = new MessageEvent("message", {data});
      target.onmessage?.(event);
      target.dispatchEvent(event);
    }

    postMessage(data) {
      this.loaded.then(() => this.deliver(this.scope, data));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
