// Browsers start no worker from the file system. There the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      const tell = (type, data) => setTimeout(() => {
        const event = new MessageEvent(type, { data });
        this.dispatchEvent(event);
        this[`on${type}`]?.(event);
      });
      inside.postMessage = (data) => tell("message", data);
      this.ready = new Promise((resolve) => {
        const script = inside.document.createElement("script");
        script.src = url;
        script.onload = () => resolve(inside);
        script.onerror = () => tell("error", url);
        inside.document.body.append(script);
      });
    }
    postMessage(data) {
      this.ready.then((inside) => inside.onmessage(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
