const ownFilesOnly = {
  "default-src": "'none'",
  "style-src": "'self'",
  "font-src": "'self'",
  "script-src": "'self'",
  "connect-src": "'self'",
  "img-src": "'self'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
  "base-uri": "'none'",
};

/**
 * Headers of an answer that a browser shows: it loads only our own files, and no other site may load it or share its window.
 * @param exceptions directives of the policy for content that differ, by name.
 */
export function pageHeaders(exceptions: Partial<typeof ownFilesOnly>) {
  const directives = Object.entries({ ...ownFilesOnly, ...exceptions });
  return {
    "Content-Security-Policy": directives.map(([name, value]) => `${name} ${value}`).join("; "),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
  };
}
