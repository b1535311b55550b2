/** The types of tokens that the console creates and filters by. */
export const tokenTypes = [
  'card',
  'card_number',
  'network_token',
  'bank',
  'us_bank_account_number',
  'us_bank_routing_number',
  'social_security_number',
  'employer_id_number',
  'token',
] as const;
