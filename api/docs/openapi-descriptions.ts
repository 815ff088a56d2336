import { chargingRule } from "../charging-rule.ts";
import { errorSections } from "./error-sections.ts";

/** The longer texts of the OpenAPI document, in Markdown, for developers who are about to call the API. */

export const aboutTokens = `\`Authorization: Bearer <token>\`, with exactly one space. A token is \`smk_\` and 39 characters of \`[a-z0-9]\`; the last 7 are a
checksum. The operator of the service issues it and shows it once. Keep it on your server: anyone who has it can spend your credits. Missing,
malformed, unknown, expired and revoked tokens all get the same 401.

A token has one or more scopes: \`search\` and \`usage\` for the operations here, \`billing\` for the account pages, \`door\` for addresses
with a token in them. A valid token without the scope of an operation gets a 401 with the reason \`scope\`.`;

export const aboutTheApi = `Ranked Google results for a keyword, as JSON, for a fixed price.

## Start

\`\`\`sh
export SERPMILL_URL=https://HOST SERPMILL_TOKEN=smk_…
curl -sS --fail-with-body --max-time 35 --retry 3 "$SERPMILL_URL/v1/serp/search" \\
  -H "Authorization: Bearer $SERPMILL_TOKEN" \\
  -H "Idempotency-Key: $(openssl rand -hex 16)" \\
  -H 'Content-Type: application/json' \\
  -d '{"keyword":"best coffee beans"}'
\`\`\`

The key makes curl's retries free. Wait longer than 30 seconds: the service answers within that time.

Requests and responses are JSON in UTF-8. Every response has the header \`X-Request-Id\`, which equals \`requestId\` in the body. Fields and
values may be added under \`/v1\`, so ignore those that you do not know. Breaking changes get a new major path.

## Authentication

${aboutTokens}

## What is charged

One mil is 1/1000 USD, one credit is one mil, and all amounts are whole mils. Each plan has one price for a search of any depth, 5 mils by
default. A plan may have a price per page instead: a search then costs that price for every 10 results that \`depth\` asks for, rounded up.

- ${chargingRule} An empty list of results is an answer too.
- Refused requests and \`GET /v1/usage\` are free.
- While a search runs, its price is *held*: it cannot be spent twice. The hold is released in full if the search fails, times out, or you
  disconnect without a key.
- With an \`Idempotency-Key\` a disconnect changes nothing: the search runs to its end, and its answer stays retrievable for 24 hours.

The API checks in this order, and the first check that fails determines the answer: token, too many refused requests, scope, request, engine,
unread answers, plan, remembered answer, whether a provider supports the query, whether a worker can answer in time, credits and spending
limits, searches in flight, unpaid provider calls, rate window. A refused request leaves no hold and uses nothing of the rate window.

## Errors

Always \`{"requestId": "…", "error": {"code": "…", "message": "…", "details": {…}}}\`. Switch on \`code\`; \`message\` is for people and may
change. 429 and 503 have \`Retry-After\` in whole seconds. The header \`Link\` of an error, with \`rel="help"\`, leads to its section here.

Paths are exact: a different case or a trailing slash is a different path. Besides the errors of the operations, there are 404 \`not_found\`, 405
\`method_not_allowed\` with \`Allow\`, and 400, 408, 417 or 431 with the code \`bad_request\` for invalid HTTP, all in the same format.

${errorSections()}

## Retry safely

Send an \`Idempotency-Key\` with each search: a new one for each search, the same one for each repeat of it. If a search was charged, a repeat
within 24 hours returns its answer and charges nothing. Without a key, a repeat after a lost connection, a 503 or a 504 may pay twice.

- Repeat after a lost connection and after 429, 500, 502, 503 and 504. Do not repeat after any other error, or after a 502 with the reason \`provider_refused\`.
- Wait as \`Retry-After\` says. Without it wait 0.5 s, then double it each time up to 8 s, and vary it at random.
- Wait 35 s for an answer, and give a search 90 s with all its repeats.

## Rate limit

One window per organization, for both operations: 60 requests in 60 seconds on the plan \`free\`, 600 on \`payg\`. Responses with 200 and 429
report its state in \`RateLimit-Policy\` and \`RateLimit\`. Searches in flight have a separate limit: 5 on \`free\`, 100 on \`payg\`. Operators
can change these plans and add their own. A 429 has the reason \`unread\` while too many bytes of your earlier answers are unread, and
\`refused\` after too many refused or replayed requests. These two report that no request is left until the retry.

## The sandbox

If the operator has configured the sandbox as a provider, it generates the answers. The same query always gets the same answer, with every
type of result and domains that cannot exist (\`*.example\`). Words in \`keyword\` trigger other behaviour, so that you can test your error
handling:

| word in \`keyword\` | result |
| --- | --- |
| \`sandbox:empty\` | 200 without results, charged |
| \`sandbox:corrected\` | 200; \`query.searchedKeyword\` is the keyword without this word |
| \`sandbox:slow=1500\` | the answer arrives 1500 ms later |
| \`sandbox:timeout\` | no answer: 504 at the deadline |
| \`sandbox:error\` | the provider is down: 502 \`provider_unavailable\` |
| \`sandbox:refused\` | the provider rejects the operator's account: 502 \`provider_refused\` |
| \`sandbox:garbage\` | the provider's answer cannot be parsed: 502 \`unreadable_answer\` |`;

export const aboutSearch = `Runs one search and returns ranked results. The response comes after 30 seconds at most, unless the operator has set another
deadline. Unknown fields are rejected. The body is at most 16 KiB.

\`types\` limits the results to some types, and \`format: "compact"\` returns the organic results in a shorter shape, which has no
\`totalResultsCount\`; this is how a typed client tells the two shapes apart. Both fields are applied to the whole page. \`include\`
adds when a provider answered, and which one. \`maxAgeSeconds\` asks for a fresh answer (0), or accepts one that your organization keeps, at
the plan's cached price.

${chargingRule} The price is that of the plan, for any types and format. To pay only once when you retry, send an
\`Idempotency-Key\`. The [playground](/playground) runs a search from a form.`;

export const aboutUsage = `Returns the organization's available credit, in mils, and its plan. Free, but counts as one request in the rate window. It works
without credit, and while the organization is suspended. The answer also has the price per page and the maximum depth, if the plan has them.
\`creditBalanceMils\` agrees with \`creditsRemaining\` of searches.`;

export const aboutIdempotencyKey = `Makes a search safe to retry: 1 to 255 visible ASCII characters, new for each search, for example a UUID. A repeat within 24 hours
with the same query gets the first answer, byte for byte, with \`Idempotency-Replayed: true\`, and is not charged. While the first request
still runs, the repeat waits for it and gets its answer or its error. After an error the key is free again. The same key with another query is
400 \`bad_request\` with the reason \`idempotency_key_reused\`. All tokens of an organization share its keys.`;
