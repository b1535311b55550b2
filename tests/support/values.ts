/** Values for tokens: the card networks' published test numbers and a bank's real routing number. */

export const visa = {
  number: '4242424242424242',
  expiration_month: 12,
  expiration_year: 2030,
  cvc: '123',
};

export const mastercard = { ...visa, number: '5555555555554444' };

export const bank = { routing_number: '021000021', account_number: '000123456789' };
