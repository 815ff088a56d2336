/** The command cannot be carried out; the message is the sentence that the operator reads. */
export class CommandRefused extends Error {}
