/** Accepted values of `language_code`, as of 2025. GET /v3/serp/google/languages returns the current list for free. */
export const dataForSeoLanguages: ReadonlySet<string> = new Set(
  `
  ach af ak am ar az ban be bem bg bn bs ca ceb ckb crs cs da de ee el en es es-419 et eu fa fi fil fo fr fy ga
  gaa gl gu ha he hi hr ht hu hy id ig is it iw ja ka kg kk km kn ko kri ky lg ln lo loz lt lua lv mfe mg mi mk ml
  mn mr ms mt my ne nl no nso ny nyn om pa pcm pl ps pt pt-BR pt-PT qu rm rn ro ru rw sd si sk sl sn so sq sr
  sr-Latn sr-ME st sv sw ta te tg th ti tk tl tn to tr tum uk ur uz vi wo xh yo zh-CN zh-TW zu
`
    .trim()
    .split(/\s+/),
);
