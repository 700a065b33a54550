//! `#[derive(Row)]` for `windrow-differential`.
//!
//! ```text
//! struct   its fields' columns, one after another
//! enum     a column of a union: the number of the variant, and its fields
//! ```
//! The derived order compares the fields in sequence, or first the variant number and then the
//! fields. The encoding has the same order.

#![forbid(unsafe_code)]

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, Result, Type, parse_macro_input};

/// Maximum number of variants of a union column.
const MOST_VARIANTS: usize = 127;

/// Implements `Row` for a struct or an enum whose fields are `Row`s, and whose order is derived.
///
/// Compilation fails for unions, for enums without variants or with more than 127, and for variants
/// with explicit discriminants: the derived order follows the discriminants, not the positions.
#[proc_macro_derive(Row)]
pub fn derive_row(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implementation(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn implementation(input: &DeriveInput) -> Result<TokenStream> {
    let body = match &input.data {
        Data::Struct(data) => of_struct(&data.fields),
        Data::Enum(data) => of_enum(input, data)?,
        Data::Union(_) => return Err(Error::new_spanned(input, "a union has no order")),
    };
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(syn::parse_quote!(::windrow_differential::Row));
    }
    let (parameters, arguments, conditions) = generics.split_for_impl();
    Ok(quote! {
        impl #parameters ::windrow_differential::Row for #name #arguments #conditions {
            #body
        }
    })
}

/// Returns the path of the module with `Row`.
fn row() -> TokenStream {
    quote!(::windrow_differential::row)
}

/// The fields of a struct or of a variant, as code.
struct Parts<'a> {
    types: Vec<&'a Type>,
    /// Returns the type of the column.
    data_type: TokenStream,
    /// Matches all fields, and binds a variable for each.
    pattern: TokenStream,
    /// Encodes the variables, and decodes them.
    encode: TokenStream,
    decode: TokenStream,
}

impl<'a> Parts<'a> {
    /// Returns the code for `fields`, encoded in `form`.
    fn new(fields: &'a Fields, form: &TokenStream) -> Self {
        let row = row();
        let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
        let names: Vec<Ident> = (0..fields.len()).map(|at| format_ident!("part_{at}")).collect();
        let members = fields.members();
        // Without fields there are no bytes, not even a marker.
        let marked = (!types.is_empty())
            .then(|| (quote!(#form.put_marker(out);), quote!(#form.take_marker(bytes);)));
        let (put, take) = marked.unzip();
        Self {
            data_type: quote! {
                #row::struct_of(::std::vec![#(<#types as #row::Row>::data_type()),*])
            },
            pattern: quote!({ #(#members: #names),* }),
            encode: quote!(#put #(#row::Row::encode(#names, #form, out);)*),
            decode: quote!(#take #(let #names = #row::Row::decode(#form, bytes);)*),
            types,
        }
    }
}

fn of_struct(fields: &Fields) -> TokenStream {
    let Parts { types, data_type, pattern, encode, decode } = Parts::new(fields, &quote!(form));
    let row = row();
    quote! {
        const WIDTH: ::core::option::Option<usize> = {
            let width = ::core::option::Option::Some(0);
            #(let width = #row::width_of_both(width, <#types as #row::Row>::WIDTH);)*
            width
        };

        fn data_type() -> #row::DataType {
            #data_type
        }

        fn columns(columns: &mut ::std::vec::Vec<#row::DataType>) {
            let _ = &columns;
            #(<#types as #row::Row>::columns(columns);)*
        }

        fn encode(&self, form: #row::Form, out: &mut ::std::vec::Vec<u8>) {
            let _ = (form, &out);
            let Self #pattern = self;
            #encode
        }

        fn decode(form: #row::Form, bytes: &mut &[u8]) -> Self {
            let _ = (form, &bytes);
            #decode
            Self #pattern
        }
    }
}

fn of_enum(input: &DeriveInput, data: &syn::DataEnum) -> Result<TokenStream> {
    let count = data.variants.len();
    if !(1..=MOST_VARIANTS).contains(&count) {
        let message = format!("{count} variants, where a row tells 1 to {MOST_VARIANTS} apart");
        return Err(Error::new_spanned(input, message));
    }
    if let Some(numbered) = data.variants.iter().find(|variant| variant.discriminant.is_some()) {
        let message = "the order of variants with numbers is not that of their rows";
        return Err(Error::new_spanned(numbered, message));
    }
    let (mut variants, mut puts, mut takes) = (Vec::new(), Vec::new(), Vec::new());
    let row = row();
    let nested = quote!(#row::Form::Nested);
    for (number, variant) in (0u8..).zip(&data.variants) {
        let name = &variant.ident;
        let Parts { data_type, pattern, encode, decode, .. } = Parts::new(&variant.fields, &nested);
        variants.push(data_type);
        puts.push(quote!(Self::#name #pattern => { #row::put_variant(#number, out); #encode }));
        takes.push(quote!(#number => { #decode Self::#name #pattern }));
    }
    Ok(quote! {
        const WIDTH: ::core::option::Option<usize> = ::core::option::Option::None;

        fn data_type() -> #row::DataType {
            #row::enum_of(::std::vec![#(#variants),*])
        }

        fn encode(&self, _form: #row::Form, out: &mut ::std::vec::Vec<u8>) {
            match self { #(#puts)* }
        }

        fn decode(_form: #row::Form, bytes: &mut &[u8]) -> Self {
            match #row::take_variant(bytes) {
                #(#takes)*
                other => ::core::panic!("a row of variant {other}"),
            }
        }
    })
}
