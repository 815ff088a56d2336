-- An answer of the usual size stays in its row. Compressed it has about 2,000 bytes, just enough for Postgres to move it out of line:
-- two rows of the TOAST table and two entries of its index more, for each search with an Idempotency-Key. The bound lets two rows fit
-- into a page of 8 kB. Larger answers are moved as before, and so stay those that are stored already.
alter table answers_0 set (toast_tuple_target = 4064);
alter table answers_1 set (toast_tuple_target = 4064);
alter table answers_2 set (toast_tuple_target = 4064);
alter table answers_3 set (toast_tuple_target = 4064);
