//! `#[derive(Row)]` for `windrow-differential`.
//!
//! ```text
//! struct   its fields' columns, one after another
//! enum     a column of a union: the number of the variant, and its fields
//! ```
//! The derived order compares the fields in sequence, or first the variant number and then the
//! fields. The encoding has the same order.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, Index, Result, Type, parse_macro_input};

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

fn types(fields: &Fields) -> Vec<&Type> {
    fields.iter().map(|field| &field.ty).collect()
}

/// Returns a pattern of all fields, and the variables bound by the pattern.
fn pattern(fields: &Fields) -> (TokenStream, Vec<Ident>) {
    let names: Vec<Ident> = (0..fields.len()).map(|at| format_ident!("part_{at}")).collect();
    let members = fields.iter().enumerate().map(|(at, field)| match &field.ident {
        Some(name) => quote!(#name),
        None => {
            let index = Index::from(at);
            quote!(#index)
        }
    });
    (quote!({ #(#members: #names),* }), names)
}

fn of_struct(fields: &Fields) -> TokenStream {
    let types = types(fields);
    let (pattern, names) = pattern(fields);
    // A struct without fields encodes to no bytes, not even a marker.
    let marked = (!types.is_empty())
        .then(|| (quote!(form.put_marker(out);), quote!(form.take_marker(bytes);)));
    let (put, take) = marked.unzip();
    quote! {
        const WIDTH: ::core::option::Option<usize> = {
            let width = ::core::option::Option::Some(0);
            #(let width = ::windrow_differential::row::width_of_both(
                width,
                <#types as ::windrow_differential::Row>::WIDTH,
            );)*
            width
        };

        fn data_type() -> ::windrow_differential::row::DataType {
            ::windrow_differential::row::struct_of(::std::vec![
                #(<#types as ::windrow_differential::Row>::data_type()),*
            ])
        }

        fn columns(columns: &mut ::std::vec::Vec<::windrow_differential::row::DataType>) {
            let _ = &columns;
            #(<#types as ::windrow_differential::Row>::columns(columns);)*
        }

        fn encode(&self, form: ::windrow_differential::row::Form, out: &mut ::std::vec::Vec<u8>) {
            let _ = (form, &out);
            #put
            let Self #pattern = self;
            #(::windrow_differential::Row::encode(#names, form, out);)*
        }

        fn decode(form: ::windrow_differential::row::Form, bytes: &mut &[u8]) -> Self {
            let _ = (form, &bytes);
            #take
            #(let #names = ::windrow_differential::Row::decode(form, bytes);)*
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
    for (number, variant) in (0u8..).zip(&data.variants) {
        let (name, types) = (&variant.ident, types(&variant.fields));
        let (pattern, names) = pattern(&variant.fields);
        let nested = quote!(::windrow_differential::row::Form::Nested);
        // A variant without fields has nothing after its number; otherwise a struct follows.
        let marked = (!types.is_empty())
            .then(|| (quote!(#nested.put_marker(out);), quote!(#nested.take_marker(bytes);)));
        let (put, take) = marked.unzip();
        variants.push(quote! {
            ::windrow_differential::row::struct_of(::std::vec![
                #(<#types as ::windrow_differential::Row>::data_type()),*
            ])
        });
        puts.push(quote! {
            Self::#name #pattern => {
                ::windrow_differential::row::put_variant(#number, out);
                #put
                #(::windrow_differential::Row::encode(#names, #nested, out);)*
            }
        });
        takes.push(quote! {
            #number => {
                #take
                #(let #names = ::windrow_differential::Row::decode(#nested, bytes);)*
                Self::#name #pattern
            }
        });
    }
    Ok(quote! {
        const WIDTH: ::core::option::Option<usize> = ::core::option::Option::None;

        fn data_type() -> ::windrow_differential::row::DataType {
            ::windrow_differential::row::enum_of(::std::vec![#(#variants),*])
        }

        fn encode(&self, _form: ::windrow_differential::row::Form, out: &mut ::std::vec::Vec<u8>) {
            match self { #(#puts)* }
        }

        fn decode(_form: ::windrow_differential::row::Form, bytes: &mut &[u8]) -> Self {
            match ::windrow_differential::row::take_variant(bytes) {
                #(#takes)*
                other => ::core::panic!("a row of variant {other}"),
            }
        }
    })
}
