-- A search of depth 100 costs ten calls at some providers, so a plan may have a price for each page of results, and a largest depth.

-- Processes of the last release read `price_mils` alone and charge it for any depth. Ten pages stay below 2^53 mils.
alter table plans
  add column price_per_page_mils bigint
    constraint price_per_page_is_never_negative check (price_per_page_mils between 0 and 900719925474099),
  add column max_depth integer constraint max_depth_is_a_depth check (max_depth between 1 and 100);
