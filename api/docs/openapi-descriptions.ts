/** What the document says beyond single fields, in Markdown. The contract's words, for somebody who is about to call. */

export const aboutTheApi = `Ranked Google results for a keyword, as JSON, for a fixed price that is charged only when the answer arrives.

JSON in and out, UTF-8. Every response carries \`X-Request-Id\`, equal to \`requestId\` where the body has one. Breaking changes get a new
major path; fields and values may be added under \`/v1\`, so let pass what you do not know. Paths are exact: another case or a trailing
slash is another path. Around the operations, in the shape of all errors: 404 \`not_found\`, 405 \`method_not_allowed\` with \`Allow\`, and
400, 408, 417 or 431 with the code \`bad_request\` for what is not sound HTTP.

## Start

\`\`\`sh
curl -s https://HOST/v1/serp/search -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/json' -d '{"keyword":"best coffee beans"}'
\`\`\`

## What is charged

One mil is 1/1000 USD, one credit is one mil, and all amounts are whole mils. A search has one price per plan, 5 mils by default, whatever
its depth.

- A search is charged when it is answered with 200 and all bytes were handed to your socket. An empty list of results is an answer too.
- Every other status charges nothing, and \`GET /v1/usage\` costs nothing.
- While a search runs its price is *held*: it cannot be spent twice. It returns in full if the search fails, times out, or you hang up.
- With an \`Idempotency-Key\` a hang-up changes nothing: the search runs to its end and its answer stays retrievable for 24 hours.

Checks run in this order, and the first that fails answers: identity, request, engine, plan, remembered answer, credits, searches in flight,
rate window. A refusal leaves no hold and takes nothing from the window.

## Errors

Always \`{"requestId": "…", "error": {"code": "…", "message": "…", "details": {…}}}\`. Switch on \`code\`; \`message\` is for people and may
change. 429 and 503 carry \`Retry-After\` in whole seconds. After a broken connection, a 503 or a 504, repeat with the same \`Idempotency-Key\`:
if the first was charged, the repeat brings its answer and charges nothing.

## Rate limit

One window per organization, over both operations: 60 requests in 60 seconds on the plan \`free\`, 600 on \`payg\`. 200 and 429 tell where it
stands in \`RateLimit-Policy\` and \`RateLimit\`. Searches in flight have a limit of their own: 5 on \`free\`, 100 on \`payg\`. Operators can change
these plans and add their own.

## The sandbox

Where the operator has set up no provider, the sandbox answers: always the same for the same query, with sites that cannot exist
(\`*.example\`) and every type of result. Words in \`keyword\` call up the rest, so that you can try your error handling:

| word in \`keyword\` | what happens |
| --- | --- |
| \`sandbox:empty\` | 200 without results, charged |
| \`sandbox:slow=1500\` | the answer comes 1500 ms later |
| \`sandbox:timeout\` | no answer: 504 at the deadline |
| \`sandbox:error\` | the provider is down: 502 \`provider_unavailable\` |
| \`sandbox:refused\` | the provider refuses the operator's account: 502 \`provider_refused\` |
| \`sandbox:garbage\` | the provider answers nonsense: 502 \`unreadable_answer\` |`;

export const aboutTokens = `\`Authorization: Bearer <token>\`, with exactly one space. A token is \`smk_\` and 39 characters of \`[a-z0-9]\`, the last 7 of them a
checksum. The operator of the service issues it and shows it once. Keep it on your server: whoever has it spends your credits. Missing,
malformed, unknown, expired and revoked tokens all get the same 401.`;

export const aboutSearch = `Runs one search and answers with ranked results. Waits for the answer: 30 seconds at most, unless the operator has set another
deadline. A field that is not listed is refused. The body is at most 16 KiB.

Charged when the answer is delivered, one price whatever the depth; nothing else charges. To be sure to pay once, send an \`Idempotency-Key\`.`;

export const aboutUsage = `What the organization can spend now, in mils, and its plan. Costs nothing but one request of the rate window and changes
nothing. It can be read without credits, and while the organization is suspended. \`creditBalanceMils\` agrees with \`creditsRemaining\` of searches.`;

export const aboutIdempotencyKey = `Makes a search safe to repeat: 1 to 255 visible ASCII characters, new for each search, for example a UUID. A repeat within 24 hours
with the same query answers what the first one answered, byte for byte, with \`Idempotency-Replayed: true\`, and charges nothing. While the first
still runs, the repeat waits for it and shares its answer, good or bad. After an error the key is free again. The same key with another query is
400 \`bad_request\` with the reason \`idempotency_key_reused\`.`;
