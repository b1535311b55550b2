/**
 * A megabyte of modules, which only vaults with programs behind them need. Each is imported by this file and not when
 * it is needed: of modules in the older form a bundle then finds the names.
 */
import 'reflect-metadata';
import { AsnConvert } from '@peculiar/asn1-schema';
import * as asn from '@peculiar/asn1-x509';
import * as x509 from '@peculiar/x509';

export const certificateModules = { asn, AsnConvert, x509 };
