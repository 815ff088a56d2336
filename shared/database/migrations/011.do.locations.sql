-- Locations by name, as the commands `locations refresh` and `locations refresh-names` stored them. A worker looks a city or region
-- up before it calls the provider. Without a list, names are sent as the caller wrote them.

-- The lists that providers publish, and the one of GeoNames.
create table location_lists (
  provider text primary key,
  refreshed_at timestamptz not null default clock_timestamp(),
  locations integer not null constraint a_list_is_never_empty check (locations > 0)
);

-- The cities and regions of a provider's list.
create table locations (
  provider text not null references location_lists on delete cascade,
  country_code text not null constraint country_code_has_two_letters check (country_code ~ '^[A-Z]{2}$'),
  -- City and region without case, accents and the country: `munich,bavaria`.
  folded text collate "C" not null,
  -- As the provider spells it: `Munich,Bavaria,Germany`.
  name text not null,
  -- An advertising market, such as a DMA region, is named after its city. A caller means it only by its full name.
  is_market boolean not null
);
create index locations_by_name on locations (provider, country_code, folded);

-- The names of cities in all languages. A worker looks a city up here whose name no provider's list has. All rows with one
-- place_id are names of one city.
create table place_names (
  list text not null default 'geonames' references location_lists on delete cascade,
  place_id bigint not null,
  country_code text not null constraint country_code_has_two_letters check (country_code ~ '^[A-Z]{2}$'),
  -- Without case and accents, like the first part of `locations.folded`: `munchen`.
  folded text collate "C" not null
);
create index place_names_by_name on place_names (country_code, folded);
create index place_names_by_place on place_names (place_id);
