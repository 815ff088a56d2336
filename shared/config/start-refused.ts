/** A process cannot start as it is set up. The message is what the operator gets, without a stack. */
export class StartRefused extends Error {}
