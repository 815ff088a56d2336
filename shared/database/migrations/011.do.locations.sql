-- Locations by name, as the command `locations refresh` stored them. A worker looks a city or region up before it calls the
-- provider. Without a list, names are sent as the caller wrote them.

-- The lists that providers publish.
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
