import type { Service } from "../processes/service.ts";

type Search = Parameters<Service["search"]>;

/** Searches as a caller does that tries again while a busy service answers 503: on a slow machine it sheds searches. */
export async function searchPatiently(service: Service, token: string, body: Search[1], options: Search[2] = {}) {
  for (;;) {
    const answer = await service.search(token, body, options);
    if (answer.status !== 503) return answer;
  }
}
