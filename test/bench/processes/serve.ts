/** Answers the messages of the process that started this one, see `AskedProcess`. Ends with it. */
export function serve(handle: (message: unknown) => Promise<unknown>): void {
  process.on("message", (message) => {
    handle(message).then(
      (value) => process.send?.({ value }),
      (error: unknown) => process.send?.({ error: String(error instanceof Error ? error.stack : error) }),
    );
  });
  process.on("disconnect", () => process.exit());
}
