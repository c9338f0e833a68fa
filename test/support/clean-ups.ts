/** What is to be done when the tests of a file are over. A process takes several files, and loads what they share once. */
export const cleanUps: (() => unknown)[] = [];
