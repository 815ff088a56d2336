-- The names of cities in all languages, as the command `locations refresh-names` stored them. A worker looks a city up here
-- whose name no provider's list has. All rows with one place_id are names of one city.

create table place_names (
  list text not null default 'geonames' references location_lists on delete cascade,
  place_id bigint not null,
  country_code text not null constraint country_code_has_two_letters check (country_code ~ '^[A-Z]{2}$'),
  -- Without case and accents, like the first part of `locations.folded`: `munchen`.
  folded text collate "C" not null
);
create index place_names_by_name on place_names (country_code, folded);
create index place_names_by_place on place_names (place_id);
