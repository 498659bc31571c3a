/** A token that the client is given once and for all: none of the alternatives knows how to keep one fresh. */
export const TOKEN = `header.claims.${'s'.repeat(342)}`;

export const HEADERS = { authorization: `Bearer ${TOKEN}`, accept: 'application/json' };
