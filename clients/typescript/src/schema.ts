// Generated from the OpenAPI document by `npm run clients`.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        SearchRequest: {
            /**
             * @description What to search for, as typed into the engine: 1 to 700 characters after trimming.
             * @example best coffee beans
             */
            keyword: string;
            /**
             * @description The search engine. Only `google` is supported; any other name is refused.
             * @default google
             * @example google
             */
            engine?: string;
            /**
             * @description Where the search is made from: a country, or a city or region in it. The last part is the country: its English name, a usual short form, a name in one of its official languages, or its ISO 3166-1 code; or the code of a state of the United States. A code that is both means the one that has the city (`Wilmington, DE`); if both have it, or neither, it is refused with both. A bare city is refused with the places of that name. A city or region that the providers do not list, or a name that several have, may be refused with `query_rejected` and candidates.
             * @default United States
             * @example Austin, Texas, United States
             * @example Berlin, Germany
             * @example GB
             */
            location?: string;
            /**
             * @description The language of the search: its English name, its own name, or its BCP 47 code, with a hyphen or underscore.
             * @default English
             * @example German
             * @example Deutsch
             * @example pt-BR
             */
            language?: string;
            /**
             * @description The kind of page. If no provider can search it, the search is refused with `query_rejected`.
             * @default desktop
             * @enum {string}
             */
            device?: "desktop" | "mobile";
            /**
             * @description The number of organic results to return. The price depends on it only if the plan has a price per page.
             * @default 10
             * @example 10
             */
            depth?: number;
            /**
             * @description Return only results on this domain or its subdomains. They keep their ranks among all results. A host name; `https://`, `www.` and a path are removed.
             * @example example.com
             */
            targetDomain?: string;
            /**
             * @description Return only results of these types. They keep their ranks among all results. The price does not depend on it.
             * @example [
             *       "organic",
             *       "people_also_ask"
             *     ]
             */
            types?: ("organic" | "paid" | "featured_snippet" | "answer_box" | "ai_overview" | "knowledge_graph" | "people_also_ask" | "local_pack" | "top_stories" | "video" | "images" | "shopping" | "discussions" | "related_searches" | "other")[];
            /**
             * @description The format of the answer: `full`, or `compact` with only title, URL and description of the organic results, without `types`. The price does not depend on it.
             * @default full
             * @enum {string}
             */
            format?: "full" | "compact";
            /**
             * @description The greatest age of the answer in seconds. 0 asks a provider anew. With more, an answer to the same query may come back that the organization has paid for before, if it has its answers kept; that costs the plan's cached price. Without it the search asks a provider, or the cache of the operator.
             * @example 3600
             */
            maxAgeSeconds?: number;
            /**
             * @description Further fields of the answer: `fetchedAt`, when a provider answered this query, and `answeredBy`, which provider did. The price does not depend on it.
             * @example [
             *       "fetchedAt"
             *     ]
             */
            include?: ("fetchedAt" | "answeredBy")[];
        };
        /** @description The id of the request, equal to `X-Request-Id`. Name it when you report a problem. */
        RequestId: string;
        /** @description The results and their cost. */
        SearchAnswer: {
            requestId: components["schemas"]["RequestId"];
            /** @description The search as it was executed, complete and canonical. */
            query: components["schemas"]["Query"];
            /** @description Mils charged for this search: the plan's price, or its cached price if a kept answer answered. In a replay it is what the first request paid. */
            creditsCharged: number;
            /** @description Mils available right after this search was admitted: the balance without its price and without the holds of other searches. */
            creditsRemaining: number;
            /** @description When the provider's answer to this query arrived: ISO 8601 in UTC. It is before the request if the answer is a cached one. Missing unless `include` asks for it. */
            fetchedAt?: string;
            /**
             * @description The provider that answered this query. Missing unless `include` asks for it, or if the operator of the service does not tell.
             * @example serper
             */
            answeredBy?: string;
            /** @description The engine's own estimate, or 0 if it gives none. */
            totalResultsCount: number;
            /** @description Present if results at the end of the page were left out, because the answer would have more than 2 MiB. The results that are there keep their ranks. */
            truncated?: true;
            /** @description In rank order. An empty list is a successful answer and is charged. */
            results: components["schemas"]["Result"][];
        };
        Query: {
            /** @description The keyword, trimmed. */
            keyword: string;
            /** @description The search engine. */
            engine: string;
            /**
             * @description The location in canonical form, without spaces after commas.
             * @example Austin,Texas,United States
             */
            location: string;
            /**
             * @description The language by its English name.
             * @example German
             */
            language: string;
            /** @description The kind of page. */
            device: "desktop" | "mobile";
            /** @description The number of organic results that were requested. */
            depth: number;
            /** @description The domain that the results are limited to. Missing if the search has none. */
            targetDomain?: string;
            /** @description The types that the results are limited to, each once, in the order of the documentation. Missing if the search has none. */
            types?: ("organic" | "paid" | "featured_snippet" | "answer_box" | "ai_overview" | "knowledge_graph" | "people_also_ask" | "local_pack" | "top_stories" | "video" | "images" | "shopping" | "discussions" | "related_searches" | "other")[];
            /** @description The greatest age of the answer that was accepted. Missing if the request did not say. */
            maxAgeSeconds?: number;
            /** @description The further fields that were asked for, each once. Missing if the search has none. */
            include?: ("fetchedAt" | "answeredBy")[];
            /** @description What the engine searched instead of `keyword`, because it corrected the spelling. Missing if it searched `keyword`, or if the provider does not tell. */
            searchedKeyword?: string;
        };
        /** @description One element of the page. All nine keys are always present: a missing text is `""`, a missing list `[]`. */
        Result: {
            /**
             * @description The kind of element.
             *
             *     - `organic`: a regular, unpaid result
             *     - `paid`: an advertisement
             *     - `featured_snippet`: an answer quoted from a page, above the results
             *     - `answer_box`: an answer by the engine itself: weather, calculations, times
             *     - `ai_overview`: an answer generated by a model
             *     - `knowledge_graph`: the panel about a person, a place or a thing
             *     - `people_also_ask`: related questions, as `siteLinks`
             *     - `local_pack`: businesses near the location
             *     - `top_stories`: current news
             *     - `video`: videos
             *     - `images`: pictures
             *     - `shopping`: products with prices
             *     - `discussions`: forum threads and discussions
             *     - `related_searches`: keywords that people also search for
             *     - `other`: an element of any other kind
             * @enum {string}
             */
            type: "organic" | "paid" | "featured_snippet" | "answer_box" | "ai_overview" | "knowledge_graph" | "people_also_ask" | "local_pack" | "top_stories" | "video" | "images" | "shopping" | "discussions" | "related_searches" | "other";
            /** @description The position among all elements of all pages, from 1: the provider's own where it tells one, otherwise by the order of the elements. It rises from result to result, with gaps where the provider counts elements that are not in the list. */
            rank: number;
            /** @description The headline, or `""`. */
            title: string;
            /** @description The absolute URL, http or https; `""` for an element without a link. */
            url: string;
            /** @description The host of `url`, in lower case and without `www.`, or `""`. Without a `url`, the host in `breadcrumb` if the provider has only an encrypted redirect of Google. */
            domain: string;
            /** @description The URL as the engine displays it, or `""`. */
            breadcrumb: string;
            /** @description The text below the headline, or `""`. */
            description: string;
            /** @description Short texts around the description. */
            richSnippet: {
                /** @description Texts above or beside the description: a rating, a price, a date. */
                top: string[];
                /** @description Texts below the description. */
                bottom: string[];
            };
            /** @description The links inside the element, or `[]`. */
            siteLinks: components["schemas"]["SiteLink"][];
        };
        /** @description A link inside a result: a question, a story, a video, a product, or a page of the same site. */
        SiteLink: {
            /** @description The text of the link. */
            title: string;
            /** @description The absolute URL, or `""` for a link without one. */
            url: string;
            /** @description The answer or the source line of the link, or `""`. */
            description: string;
        };
        /** @description The organic results in short, and their cost: the answer in the format `compact`. */
        CompactSearchAnswer: {
            requestId: components["schemas"]["RequestId"];
            /** @description The search as it was executed, complete and canonical. */
            query: components["schemas"]["CompactQuery"];
            /** @description Mils charged for this search: the plan's price, or its cached price if a kept answer answered. In a replay it is what the first request paid. */
            creditsCharged: number;
            /** @description Mils available right after this search was admitted: the balance without its price and without the holds of other searches. */
            creditsRemaining: number;
            /** @description When the provider's answer to this query arrived: ISO 8601 in UTC. It is before the request if the answer is a cached one. Missing unless `include` asks for it. */
            fetchedAt?: string;
            /**
             * @description The provider that answered this query. Missing unless `include` asks for it, or if the operator of the service does not tell.
             * @example serper
             */
            answeredBy?: string;
            /** @description Present if results at the end of the page were left out, because the answer would have more than 2 MiB. The results that are there keep their ranks. */
            truncated?: true;
            /** @description The organic results in rank order. An empty list is a successful answer and is charged. */
            results: components["schemas"]["CompactResult"][];
        };
        CompactQuery: {
            /** @description The keyword, trimmed. */
            keyword: string;
            /** @description The search engine. */
            engine: string;
            /**
             * @description The location in canonical form, without spaces after commas.
             * @example Austin,Texas,United States
             */
            location: string;
            /**
             * @description The language by its English name.
             * @example German
             */
            language: string;
            /** @description The kind of page. */
            device: "desktop" | "mobile";
            /** @description The number of organic results that were requested. */
            depth: number;
            /** @description The domain that the results are limited to. Missing if the search has none. */
            targetDomain?: string;
            /** @description The format of the answer. */
            format: "compact";
            /** @description The greatest age of the answer that was accepted. Missing if the request did not say. */
            maxAgeSeconds?: number;
            /** @description The further fields that were asked for, each once. Missing if the search has none. */
            include?: ("fetchedAt" | "answeredBy")[];
            /** @description What the engine searched instead of `keyword`, because it corrected the spelling. Missing if it searched `keyword`, or if the provider does not tell. */
            searchedKeyword?: string;
        };
        /** @description An organic result. All three keys are always present. */
        CompactResult: {
            /** @description The headline, or `""`. */
            title: string;
            /** @description The absolute URL, http or https; `""` for an element without a link. */
            url: string;
            /** @description The text below the headline, or `""`. */
            description: string;
        };
        /** @description The available credit and the plan. */
        Usage: {
            /** @description The available credit in mils: the balance minus what is held. */
            creditBalanceMils: number;
            /** @description The organization's plan. */
            plan: string;
            /** @description The price in mils per 10 results that a search's depth asks for, rounded up. Missing if the plan has one price for all depths. */
            pricePerPageMils?: number;
            /** @description The largest depth that the plan includes. Missing if it includes all. */
            maxDepth?: number;
            /** @description The limits that apply to this token. Present if there are any. */
            limits?: {
                /** @description Whose limit it is: the organization's or this token's. */
                scope: "organization" | "token";
                /** @description The UTC day or the calendar month. */
                period: "day" | "month";
                /** @description The limit, in mils. */
                limitMils: number;
                /** @description The mils spent in this period, without what was given back. */
                spentMils: number;
                /** @description The mils held by searches in flight, which count until they end. */
                heldMils: number;
                /** @description When the period ends. */
                renewsAt: string;
            }[];
        };
        /** @description What is wrong, for people. It may change. */
        ErrorMessage: string;
        /** @description The request is not valid; see details. */
        BadRequest: {
            /** @description The error code, for programs. */
            code: "bad_request";
            message: components["schemas"]["ErrorMessage"];
            /** @description Either `issues` or `reason`. */
            details: {
                /** @description The invalid fields. */
                issues?: {
                    /** @description The field or header; `""` for the body as a whole. */
                    path: string;
                    /** @description What was expected. */
                    message: string;
                }[];
                /** @description What is wrong, if it is not a field. */
                reason?: "body_missing" | "body_not_json" | "body_not_utf8" | "body_too_large" | "body_unreadable" | "content_type_not_json" | "content_encoding_unsupported" | "charset_not_utf8" | "json_not_accepted" | "idempotency_key_reused" | "malformed_http" | "one_host_header_expected" | "too_many_headers" | "headers_too_large" | "transfer_encoding_not_chunked" | "expectation_unknown" | "request_too_slow";
            };
        };
        /** @description No configured provider can run this query as requested. */
        QueryRejected: {
            /** @description The error code, for programs. */
            code: "query_rejected";
            message: components["schemas"]["ErrorMessage"];
            /** @description Which field to change, and why. */
            details: {
                /** @description `unsupported`: no configured provider supports the field. `refused_by_provider`: a provider rejected it. `location_unknown`: no provider lists the city or region, or it is not known. `location_ambiguous`: there are several of that name. */
                reason: "unsupported" | "refused_by_provider" | "location_unknown" | "location_ambiguous";
                /** @description The field to change. */
                field: "keyword" | "location" | "language" | "device";
                /** @description Locations to choose from, each of which can be sent as `location`: those of the same name, or similar ones. Present with `location_unknown`, where it may be empty, and `location_ambiguous`. */
                candidates?: string[];
            };
        };
        /** @description A valid token is required in the header `Authorization: Bearer smk_…`. Tokens may expire or be revoked. */
        Unauthenticated: {
            /** @description The error code, for programs. */
            code: "unauthenticated";
            message: components["schemas"]["ErrorMessage"];
            /** @description Empty for a token that is missing, malformed, unknown, expired or revoked. */
            details: {
                /** @description Present if the token is valid, but lacks the scope that the operation needs. */
                reason?: "scope";
                /** @description The scope that is missing; with `reason`. */
                scope?: "search" | "usage" | "billing";
            };
        };
        /** @description The organization's plan does not include this operation. */
        PlanRequired: {
            /** @description The error code, for programs. */
            code: "plan_required";
            message: components["schemas"]["ErrorMessage"];
            /** @description The plan, and what would help. */
            details: {
                /** @description The organization's plan. */
                plan: string;
                /** @description What the organization can do: `contact_operator` if it is suspended, otherwise `upgrade`. */
                action: "upgrade" | "contact_operator";
                /** @description `suspended`: the operator has suspended the organization. `max_depth`: the plan has no searches of this depth. Missing if the plan has no searches at all. */
                reason?: "suspended" | "max_depth";
                /** @description The largest depth that the plan includes; with `max_depth`. */
                maxDepth?: number;
            };
        };
        /** @description The organization's credit, or a spending limit of the organization or the token, does not cover this search. */
        OutOfCredits: {
            /** @description The error code, for programs. */
            code: "out_of_credits";
            message: components["schemas"]["ErrorMessage"];
            /** @description The price and the available credit, or what is left of the limit. If `heldMils` is not 0, some of it may be released soon. */
            details: {
                /** @description The price of the search, in mils. */
                priceMils: number;
                /** @description The available credit, or what a limit leaves of it, in mils. */
                availableMils: number;
                /** @description The amount in mils that searches in flight hold. It is released if they fail. */
                heldMils: number;
                /** @description What the organization can do: `topup`. If a limit was reached, `raise_limit`, or wait until it renews. */
                action: "topup" | "raise_limit";
                /** @description Where to top up: a URL, or a path on this host. */
                topupUrl: string;
                /** @description Present with `period` and `renewsAt` if a limit was reached: of the organization, or of the token. */
                reason?: "daily_limit" | "monthly_limit" | "token_limit";
                /** @description The UTC day or the calendar month. */
                period?: "day" | "month";
                /** @description The limit, in mils. Absent if less counts against it by now. */
                limitMils?: number;
                /** @description When the limit renews, in UTC. */
                renewsAt?: string;
            };
        };
        /** @description Too many requests. Retry after the given time. */
        RateLimited: {
            /** @description The error code, for programs. */
            code: "rate_limited";
            message: components["schemas"]["ErrorMessage"];
            /** @description Which limit was reached, and when to retry. */
            details: {
                /** @description `window`: the rate window is full. `concurrency`: too many searches in flight. `unpaid_calls`: in the last hour too many provider calls were left unpaid by searches that were disconnected, cancelled or whose answers were not taken. `unread`: too many bytes of earlier answers are not read yet. `refused`: too many requests were refused, replayed or called no tool. */
                reason: "window" | "concurrency" | "unpaid_calls" | "unread" | "refused";
                /** @description When to retry, in milliseconds. */
                retryAfterMs: number;
                /** @description The limit: requests per window, searches in flight, unpaid provider calls an hour, or bytes. */
                limit: number;
                /** @description The length of the window, in seconds; for `window`, `unpaid_calls` and `refused`. */
                windowSeconds?: number;
            };
        };
        /** @description Internal error. Nothing was charged. */
        InternalError: {
            /** @description The error code, for programs. */
            code: "internal_error";
            message: components["schemas"]["ErrorMessage"];
            /** @description No details. */
            details: Record<string, never>;
        };
        /** @description This engine is not implemented. */
        NotImplemented: {
            /** @description The error code, for programs. */
            code: "not_implemented";
            message: components["schemas"]["ErrorMessage"];
            /** @description The requested engine and the supported ones. */
            details: {
                /** @description The requested engine. */
                engine: string;
                /** @description The supported engines. */
                supported: string[];
            };
        };
        /** @description The search provider failed. Nothing was charged. */
        EngineError: {
            /** @description The error code, for programs. */
            code: "engine_error";
            message: components["schemas"]["ErrorMessage"];
            /** @description How the last provider failed. */
            details: {
                /** @description `provider_unavailable`: down or overloaded. `provider_refused`: it rejected the operator's account or the request. `unreadable_answer`: its answer could not be parsed. */
                reason: "provider_unavailable" | "provider_refused" | "unreadable_answer";
            };
        };
        /** @description The service cannot take this request right now. Retry after the given time. */
        Unavailable: {
            /** @description The error code, for programs. */
            code: "unavailable";
            message: components["schemas"]["ErrorMessage"];
            /** @description Why, and when to retry. */
            details: {
                /** @description `no_workers`: no worker is running. `queue_too_long`: too many searches wait. `shutting_down`: this process is stopping. `token_lookups_full`: too many unknown tokens wait to be checked. With these four nothing was charged. `redis_unreachable` and `postgres_unreachable`: the API cannot reach its Redis or its Postgres. `balance_unreadable`: the balance cannot be read. With these three the search may be charged: without an Idempotency-Key a repeat may pay twice. */
                reason: "redis_unreachable" | "postgres_unreachable" | "token_lookups_full" | "no_workers" | "queue_too_long" | "shutting_down" | "balance_unreadable";
                /** @description When to retry, in milliseconds. */
                retryAfterMs: number;
            };
        };
        /** @description No answer before the deadline. Nothing was charged, unless an Idempotency-Key was sent: then the answer may be kept under it. */
        EngineTimeout: {
            /** @description The error code, for programs. */
            code: "engine_timeout";
            message: components["schemas"]["ErrorMessage"];
            /** @description The deadline of the search. */
            details: {
                /** @description The deadline that has passed, in milliseconds. */
                timeoutMs: number;
            };
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
