import type { Answer, Organization, Service } from "../processes/service.ts";

/** The text of a page, or of a part of one, without markup. */
export const readable = (html: string): string =>
  html
    .replace(/<(script|style|title)[\s\S]*?<\/\1>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();

/** A browser without a screen: it keeps the session's cookie, and says where a request came from. */
export class PageVisitor {
  readonly #service: Service;
  /** The cookie as it is sent, `name=value`, and the whole Set-Cookie header. */
  cookie: string | undefined;
  setCookie: string | undefined;
  headers: Record<string, string>;
  api = 0;

  constructor(service: Service, headers: Record<string, string> = {}) {
    this.#service = service;
    this.headers = headers;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send(path, { method: "GET", headers });
  }

  /** Sends a form; without other `headers`, as our own page would. */
  post(path: string, fields: Record<string, string>, headers: Record<string, string> = ownForm): Promise<Answer> {
    return this.#send(path, { method: "POST", headers, body: new URLSearchParams(fields) });
  }

  signIn(token: string): Promise<Answer> {
    return this.post("/billing/sign-in", { token });
  }

  /** Opens a stream of live updates: without another `path`, that of the overview. */
  async follow(
    path = "/billing/live",
    signal?: AbortSignal,
  ): Promise<{ status: number; events: AsyncGenerator<LiveEvent> }> {
    const url = `${this.#service.apis[this.api]?.url}${path}`;
    const response = await fetch(url, { headers: this.#withCookie({}), ...(signal && { signal }) });
    return { status: response.status, events: readEvents(response) };
  }

  async #send(path: string, init: RequestInit & { headers: Record<string, string> }): Promise<Answer> {
    const headers = this.#withCookie(init.headers);
    const answer = await this.#service.send(path, { ...init, headers, redirect: "manual", api: this.api });
    for (const line of answer.headers.getSetCookie()) {
      const [pair = ""] = line.split(";");
      this.setCookie = line;
      this.cookie = pair.endsWith("=") ? undefined : pair;
    }
    return answer;
  }

  #withCookie(headers: Record<string, string>): Record<string, string> {
    return { ...this.headers, ...headers, ...(this.cookie && { cookie: this.cookie }) };
  }
}

const signInAttemptsMax = 10;

/** A visitor who is signed in. @param to.api the API that it asks. @throws {Error} if the sign-in is refused. */
export async function signIn(
  service: Service,
  { token }: Pick<Organization, "token">,
  to: { api?: number; headers?: Record<string, string> } = {},
): Promise<PageVisitor> {
  const visitor = new PageVisitor(service, to.headers);
  visitor.api = to.api ?? 0;
  let status = 429;
  // Visitors that sign in at the same time use up the limit of their one address.
  for (let attempt = 1; status === 429 && attempt <= signInAttemptsMax; attempt += 1) {
    await forgetSignIns(service);
    ({ status } = await visitor.signIn(token));
  }
  if (status !== 303) throw new Error(`the sign-in was refused: ${status}`);
  return visitor;
}

/** A visitor who is signed in for a new organization of its own, with these terms. */
export async function signedIn(
  service: Service,
  terms?: Parameters<Service["organization"]>[0],
  to?: Parameters<typeof signIn>[2],
) {
  const organization = await service.organization(terms);
  return { organization, person: await signIn(service, organization, to) };
}

/** Resets the limit of ten sign-ins a minute: all sign-ins of a test come from one address. */
export async function forgetSignIns({ redis }: Service): Promise<void> {
  await redis.del(...(await redis.keys("sign-ins:*")), "none");
}

/** Resets the limit of sixty pages a minute of each organization. */
export async function forgetPageViews({ redis }: Service): Promise<void> {
  await redis.del(...(await redis.keys("pages:*")), "none");
}

/** The header that a browser sends with a form of the page itself. */
export const ownForm = { "sec-fetch-site": "same-origin" };

export interface LiveEvent {
  event: string;
  /** The id and the HTML of a new section. */
  id?: string;
  html?: string;
}

async function* readEvents(response: Response): AsyncGenerator<LiveEvent> {
  let text = "";
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const blocks = `${text}${chunk}`.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = /^event: (.*)$/m.exec(block)?.[1];
      const data = /^data: (.+)$/m.exec(block)?.[1];
      if (event) yield { event, ...(data && JSON.parse(data)) };
    }
  }
}
