import type { HttpProviderName } from "../fixtures/made-up-answers.ts";

/**
 * What an adapter leaves out of its provider's answers on purpose: by the reason, the fields with everything in them. Names are
 * joined with dots, and lists are not marked: `ads.tracking_link`. `*` stands for any part of a name, `**` for any fields around
 * it: `**.thumbnail`, `**.*_link`.
 */
type Omissions = Readonly<Record<string, string>>;

/** Of SerpApi and of SearchApi, whose answers have almost the same format. */
const ofScrapers: Omissions = {
  "about the request": "search_metadata",
  "repeats the request": "search_parameters",
  "about the request; the total is read from it": "search_information",
  "links to further pages": "pagination",
  "reports that there are no results": "error",
  "position in its list, shown by the order": "**.position",
  "an image URL": "**.thumbnail* **.favicon",
  "numbers from the adjacent texts; the rating is read from them": "**.detected_extensions",
  "words of the snippet": "**.snippet_highlighted_words",
  "Google's id": "**.*_id **.kgmid",
  "numbers of references": "**.reference_indexes",
  "the paragraph type": "**.text_blocks.type",
  "the answer type; used as the title if there is none": "answer_box.type",
  "reports that there is no overview": "ai_overview.error",
  "the site's name, also in its breadcrumb and domain; kept with an author": "organic_results.source",
  "a Google redirect to the adjacent link": "**.tracking_link",
  "a Google page about the result, not displayed": "**.cached_page_link",
};

const serpapi: Omissions = {
  "links to further pages": "serpapi_pagination",
  "about the request": "serp_api_data",
  "top, right or bottom, shown by the order": "**.block_position",
  "a SerpApi URL": "**.serpapi_* **.*_serpapi_link **.place_id_search",
  "an image URL": "**.image **.source_logo **.source_icon inline_images.original",
  "image URLs": "**.images",
  "images and their source pages": "**.header_images",
  "a number from the adjacent text": "**.extracted_*",
  "the adjacent number, rounded": "**.reviews_original",
  "the adjacent table in another form": "**.formatted **.detailed",
  "formulas from the adjacent text": "**.snippet_latex",
  "coordinates are not displayed": "**.gps_coordinates",
  "Google's id": "**.lsig **.data_cid **.*stick",
  "Google's name of the panel type": "knowledge_graph.entity_type",
  "a key for another call to SerpApi": "**.*_token",
  "numbers of references": "**.references.index",
  "pages that a generated answer cites; the first is used if the question has no page": "related_questions.references",
  "the answer type": "related_questions.type",
  "a Google page": "organic_results.must_include.link",
  "a Google redirect to the adjacent link; used if there is none": "organic_results.redirect_link",
  "a Google page about the result, not displayed":
    "**.cached_link **.related_pages_link **.related_link **.about_page_link",
  "Google's description of the site, in a menu next to the result": "**.about_this_result",
  "the map of the adjacent businesses": "local_map map",
  "a Google Maps page": "local_results.places.links.directions",
  "the video's URL with a time, except in organic results": "**.key_moments.link",
  "a Google page; the image's own page is in `source`": "inline_images.link",
  "a Google page with more of the same": "shopping_results.publisher_link **.more_*_link knowledge_graph.*_link",
  "the moment's share of the video": "**.key_moments.percentage",
  "a link within a result has no breadcrumb": "organic_results.related_results.displayed_link",
  "a Google page; used if the option has a title": "refine_search_filters.options.link",
};

const serper: Omissions = {
  "repeats the request": "searchParameters",
  "the cost, which is logged but not part of the page": "credits",
  "about the request": "took",
  "position in its list, shown by the order": "**.position",
  "an image URL": "**.*Url",
  "an image size": "**.*Width **.*Height",
  "the host of the URL": "**.domain",
  "Google's id": "**.cid **.fid **.*Id",
  "coordinates are not displayed": "**.latitude **.longitude",
  "words of the snippet": "**.snippetHighlighted",
  "further addresses of a business": "**.bookingLinks",
};

const searxng: Omissions = {
  "repeats the request": "query",
  "an estimate by the instance, not by Google": "number_of_results",
  "about the request; a failed engine is a failure": "unresponsive_engines",
  "of the instance, not of Google": "answers infoboxes corrections",
  "always Google": "**.engine **.engines",
  "internal to SearXNG": "**.template **.category **.score **.priority",
  "position on the page, shown by the order": "**.positions",
  "the parts of the URL": "**.parsed_url",
  "a copy of the date before the text; used if there is none": "**.publishedDate",
  "an image URL": "**.img_src **.thumbnail*",
};

const dataforseo: Omissions = {
  "about the request":
    "version status_* time tasks_* tasks.*_count tasks.id tasks.status_* tasks.time tasks.path " +
    "tasks.result.datetime",
  "the cost, which is logged but not part of the page": "cost tasks.cost",
  "repeats the request":
    "tasks.data tasks.result.keyword tasks.result.type tasks.result.se_domain tasks.result.location_code " +
    "tasks.result.language_code",
  "a Google URL": "tasks.result.check_url",
  "a list of item types": "tasks.result.item_types",
  "counts of items; the total is read from one": "tasks.result.*_count",
  "a correction becomes the searched keyword; a suggestion is omitted": "tasks.result.spell",
  "filters of the page, which link back to Google": "tasks.result.refinement_chips",
  "filters of a list": "tasks.result.items.categories",
  "a number with 12 digits": "tasks.result.items.converted_value",
  "the element type, which becomes the result type": "**.type",
  "position on the page, which becomes the rank": "**.rank_*",
  "left or right column; the right one follows the left one": "**.position",
  "position in the page source": "**.xpath",
  "position in pixels, not requested": "**.rectangle",
  "the host of the URL": "**.domain",
  "Google's id": "**.cid **.*_id **.data_attrid **.feature",
  "an ad click id": "**.ad_aclk **.extra",
  "the rating scale, part of the rating's text": "**.rating_type **.rating_max",
  "Google's description of the site, in a menu next to the result": "**.about_this_result",
  "the adjacent text with markup, which shows what of it is the text": "**.markdown",
  "an image URL": "**.profile_image_url **.logo_url **.preview **.image_url",
  "the points of a chart": "**.graph",
  "images next to a text": "**.images",
  "a Google page about the result, not displayed": "**.cache_url **.related_search_url",
  "the site's name, also in the domain and the breadcrumb": "**.website_name",
  flags: "**.checks",
  "the opened question, which is in the list": "**.seed_question",
  "pages that a generated answer cites; the first is used if the question has no page":
    "tasks.result.items.items.expanded_element.**.references",
  "the time of the displayed date; used if no date is displayed": "**.timestamp",
  "the displayed price; used if none is displayed": "**.price.current",
  "the displayed price has the currency sign": "**.price.currency",
  "the element type": "**.table.table_element",
  "words of the description": "**.highlighted",
};

const searchapi: Omissions = {
  "top or bottom, shown by the order": "**.block_position",
  "the host of the adjacent link": "**.domain",
  "an image URL": "inline_images.images.original",
  "a key for another call to SearchApi": "**.*_token",
  "numbers of references": "**.reference_links.index",
  "the paragraph type": "**.text_blocks.items.type",
  "the adjacent text in another form": "**.markdown",
  "a Google page; used if the box quotes no page": "answer_box.link",
  "the site's name, also in its breadcrumb and domain": "answer_box.organic_result.source ads.source",
  "Google's name of the panel type": "knowledge_graph.knowledge_graph_type",
  "the site's name": "organic_results.video.source",
  "words of the answer; used if there is none": "related_questions.answer_highlight",
  "the answer in another form": "related_questions.entity",
  "a Google page with more of the same": "related_questions.search",
  "pages that a generated answer cites; the first is used if the question has no page":
    "related_questions.reference_links",
  "reports that Google loads the answer later": "related_questions.error",
};

/** The fields that each adapter leaves out, by their reason. */
export const omissions: Record<HttpProviderName, ReadonlyMap<string, readonly string[]>> = {
  serpapi: toFields(ofScrapers, serpapi),
  serper: toFields(serper),
  searxng: toFields(searxng),
  dataforseo: toFields(dataforseo),
  searchapi: toFields(ofScrapers, searchapi),
};

function toFields(...parts: readonly Omissions[]): ReadonlyMap<string, readonly string[]> {
  const reasons = new Set(parts.flatMap((part) => Object.keys(part)));
  return new Map([...reasons].map((reason) => [reason, parts.flatMap((part) => part[reason]?.split(" ") ?? [])]));
}

/** Whether an omission covers the field of a provider's answer at this path: `local_results.places[].thumbnail`. */
export function coveredIn(provider: HttpProviderName): (path: string) => boolean {
  const patterns = [...omissions[provider].values()].flat().map(toPattern);
  return (path) => {
    const names = path.replaceAll("[]", "");
    return patterns.some((pattern) => pattern.test(names));
  };
}

function toPattern(path: string): RegExp {
  const names = path.split(".").map((name) => {
    if (name === "**") return "(?:[^.]+\\.)*";
    return `${name.replaceAll("*", "[^.]*")}(?:\\.|$)`;
  });
  return new RegExp(`^${names.join("")}`);
}
