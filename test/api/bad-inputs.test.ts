/**
 * Inputs that no well-behaved client sends: each gets an error of the catalogue and leaves no trace. One service answers
 * all of them; the tables are in bad-inputs/, one file per kind of fault.
 */
import "./bad-inputs/transport.ts";
import "./bad-inputs/routing.ts";
import "./bad-inputs/identity.ts";
import "./bad-inputs/content.ts";
import "./bad-inputs/fields.ts";
