/** The command was refused. The message is the sentence that the operator gets, without a stack. */
export class CommandRefused extends Error {}
