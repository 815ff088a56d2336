-- Which token made a token, so that it ends and spends within its bounds and is found when that one is revoked. Null for those of operators.
alter table tokens add column parent_id text collate "C";
